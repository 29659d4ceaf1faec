"""Each report's page: what its rows say, in words, pictures and tables.

A module here has `section(export, days, options) -> Section`. All that is collected from Spark is
bounded: one row for each period at most, or the first so many subscribers; the page says what is
left out.
"""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module

from routemaster.export.folder import Folder
from routemaster.export.writing import put
from spark_jobs.html.page import Section, page
from spark_jobs.pages.days import Days, days_of
from spark_jobs.reading import Export

# Report -> its module here and its page's title, in the order of the page of all.
PAGES = {
    "health_report": ("health", "Health"),
    "delivery_report": ("delivery", "Delivery"),
    "backlog_report": ("backlog", "What waits"),
    "slo_report": ("slo", "Objectives"),
    "anomaly_report": ("anomaly", "What was unusual"),
    "traffic_report": ("traffic", "Traffic and cost"),
}


def section_of(name: str, export: Export, days: Days, options: Namespace) -> Section:
    module = import_module(f"{__name__}.{PAGES[name][0]}")
    found: Section = module.section(export, days, options)
    return found


def page_of(name: str, export: Export, options: Namespace) -> str:
    days = days_of(export)
    return page(PAGES[name][1], str(days), [section_of(name, export, days, options)])


def write(text: str, output: str) -> str:
    """Whole or not at all, wherever `output` is."""
    folder, _, name = output.replace("s3a://", "s3://").rpartition("/")
    return put(Folder.of(folder or "."), lambda sink: sink.write(text.encode()), name)


def exists(output: str) -> bool:
    folder, _, name = output.replace("s3a://", "s3://").rpartition("/")
    return any(info.base_name == name for info in Folder.of(folder or ".").entries())

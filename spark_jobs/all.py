"""All reports on one HTML page, made by one session.

    python -m spark_jobs.all --input var/export --output var/report.html --overwrite
    spark-submit spark_jobs/all.py --input s3a://bus/export --output s3a://bus/report.html

Findings of all reports come first, then each report's own part. Not in it: rows beyond what people
read; each report's own command writes all of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # spark-submit runs this file alone: let it find the others
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.sql import DataFrame

from spark_jobs.html.page import Section, page
from spark_jobs.pages import PAGES, section_of
from spark_jobs.pages.days import Days, days_of
from spark_jobs.reading import Export
from spark_jobs.report import BadOption, run
from spark_jobs.slo_report import objectives_option

TITLE = "The bus, reported"


def make_page(export: Export, options: argparse.Namespace) -> str:
    days = days_of(export)
    return page(TITLE, str(days), make_sections(export, days, options))


def make_sections(export: Export, days: Days, options: argparse.Namespace) -> list[Section]:
    sections = []
    for number, name in enumerate(PAGES, 1):
        began = time.monotonic()
        sections.append(section_of(name, export, days, options))
        took_s = time.monotonic() - began
        print(f"{number}/{len(PAGES)} {name} {took_s:.1f} s", file=sys.stderr, flush=True)
    return sections


def build(export: Export, options: argparse.Namespace) -> DataFrame:
    raise BadOption("all reports together have one form: --format html")


def as_html(parser: argparse.ArgumentParser) -> None:
    objectives_option(parser)
    parser.set_defaults(format="html")


def main(argv: Sequence[str] | None = None) -> int:
    about = __doc__ or ""
    return run("all", about, build, argv, more_options=as_html, make_page=make_page)


if __name__ == "__main__":
    sys.exit(main())

"""Each report's page from a demo export: it finds what the export's incidents say happened."""

from __future__ import annotations

import json
from argparse import Namespace
from datetime import UTC, date, datetime
from functools import cache

import pytest

from routemaster.demo.simulate import INCIDENTS_FILE, Plan, simulate
from routemaster.export.folder import Folder
from spark_jobs import all as all_reports
from spark_jobs.files import NoExport
from spark_jobs.html.page import page
from spark_jobs.pages import PAGES, page_of, section_of, write
from spark_jobs.pages.days import Days, days_of
from spark_jobs.reading import Export
from tests.spark_jobs.html.test_page import Reader

PLAN = Plan(days=10, subscribers=4, seed=1, last_day=date(2026, 11, 15))


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    root = tmp_path_factory.mktemp("demo")
    simulate(PLAN, Folder.of(str(root)), lambda *_: None)
    return root


# Many small queries: compiling each, and planning it anew at every stage, takes most of their time.
QUICK = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


@pytest.fixture(scope="module")
def section(demo, spark):
    """Gives a report's part of the page, made once: it is what takes the time."""
    before = {name: spark.conf.get(name) for name in QUICK}
    for name, value in QUICK.items():
        spark.conf.set(name, value)
    export = Export(spark, str(demo))
    yield cache(lambda name: section_of(name, export, days_of(export), Namespace()))
    for name, value in before.items():
        spark.conf.set(name, value)


def incident(root, kind):
    found = json.loads((root / INCIDENTS_FILE).read_text())["incidents"]
    # The newest: only some days are looked at for what is unusual.
    return next(one for one in reversed(found) if one["kind"] == kind)


def texts(section):
    return [finding.text for finding in section.findings]


@pytest.mark.faults  # a minute: with the other long ones
@pytest.mark.timeout(600)  # all six reports, on a busy machine
def test_all_reports_are_on_one_page_that_is_whole_and_small(section):
    text = page("All", "ten days", [section(name) for name in PAGES])
    read = Reader(text)
    ids = {value for name, value in read.attributes if name == "id"}
    links = {value for name, value in read.attributes if name == "href"}
    assert links <= {f"#{one}" for one in ids}
    assert len(links) == len(PAGES) + 2  # the findings, and what skips the navigation
    assert len(text) < 3_000_000


@pytest.mark.slow
def test_losses_are_found_with_their_numbers(section, demo):
    lost = incident(demo, "autodrop")
    said = [
        text for text in texts(section("backlog_report")) if f"{lost['subscriber']} lost" in text
    ]
    assert len(said) == 1
    for number in ("events", "first_seq", "last_seq"):
        assert f"{lost['numbers'][number]:,}" in said[0]


@pytest.mark.faults  # ten seconds: with the other long ones
def test_an_outage_is_told_from_its_beginning_to_its_end(section, demo):
    outage = incident(demo, "outage")
    said = [
        text
        for text in texts(section("health_report"))
        if f"{outage['subscriber']} was failing" in text
    ]
    assert len(said) == 1
    assert "from Fri 13 Nov 03:1" in said[0] and " to 04:2" in said[0]
    assert f"{outage['numbers']['failed']} attempts failed" in said[0]
    assert "all delivered by 04:2" in said[0]


@pytest.mark.faults  # ten seconds: with the other long ones
def test_unusual_traffic_is_found_and_who_was_quiet_raises_no_alarm(section, demo):
    said = texts(section("anomaly_report"))
    for kind in ("spike", "silence"):
        topic = incident(demo, kind)["topic"]
        assert any(f"topic {topic}: " in text for text in said), kind
    quiet = "payments-search"
    assert not [text for text in said if text.startswith(quiet)]


@pytest.mark.slow
def test_a_queue_that_nobody_empties_is_found(section, demo):
    dead = incident(demo, "dead")["subscriber"]
    assert any(f"events wait for {dead}" in text for text in texts(section("backlog_report")))


@pytest.mark.slow
def test_who_missed_the_objective_is_found(section, demo):
    dead = incident(demo, "dead")["subscriber"]
    assert any(text.startswith(f"{dead} got ") for text in texts(section("slo_report")))


def test_a_page_is_about_the_days_there_are_or_those_asked_for(spark, demo):
    assert days_of(Export(spark, str(demo))) == Days(date(2026, 11, 6), date(2026, 11, 15))
    some = Export(spark, str(demo), date(2026, 11, 10), date(2026, 11, 11))
    assert days_of(some).starts_ms[0] == datetime(2026, 11, 10, tzinfo=UTC).timestamp() * 1000
    assert len(days_of(some).starts_ms) == 48


def test_without_files_there_is_no_page_but_a_reason(spark, tmp_path):
    with pytest.raises(NoExport, match="no files of an export"):
        page_of("backlog_report", Export(spark, str(tmp_path)), Namespace())


def test_a_page_is_written_whole_and_replaced_only_when_asked(spark, demo, tmp_path, capsys):
    output = tmp_path / "made" / "report.html"
    words = ["--input", str(demo), "--output", str(output)]
    write("old", str(output))
    assert all_reports.main(words) == 1
    assert "--overwrite replaces it" in capsys.readouterr().err
    assert all_reports.main([*words, "--format", "csv", "--overwrite"]) == 1
    assert "--format html" in capsys.readouterr().err
    assert output.read_text() == "old"

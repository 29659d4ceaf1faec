"""The anomaly report as a page: what was unusual in the last days, each with its evidence."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from datetime import date, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routemaster.domain.datasets import ATTEMPTS, GAUGES, PUBLISHES
from spark_jobs.anomaly_report import DAYS, MEASURES, MIN_DAYS, alarms
from spark_jobs.html import words
from spark_jobs.html.lines import Line, Mark, line_chart
from spark_jobs.html.markup import Safe
from spark_jobs.html.page import BAD, GOOD, WARN, Block, Figure, Finding, Section
from spark_jobs.html.scales import millis_of
from spark_jobs.html.tables import Cell, Column, badge, left_out, table
from spark_jobs.pages.days import Days
from spark_jobs.pages.rows import Row, by_period, collect, ms, of_each, only
from spark_jobs.reading import Export

# Each day is looked at by itself, beside the days before it.
LAST_DAYS = 3
MOST_ROWS, MOST_SAID, MOST_PICTURES = 60, 15, 4
SHOWN = {
    "events": words.count,
    "failure_rate": words.percent,
    "latency_seconds": words.duration,
    "backlog": words.count,
}
NAMES = {
    "events": "events in an hour",
    "failure_rate": "failed attempts",
    "latency_seconds": "mean time to delivery",
    "backlog": "events waiting",
}


def section(export: Export, days: Days, options: Namespace) -> Section:
    attempts, publishes, gauges = (export.read(each) for each in (ATTEMPTS, PUBLISHES, GAUGES))
    looked_at = [
        day for back in range(LAST_DAYS) if (day := days.last - timedelta(back)) >= days.first
    ]
    found: list[Row] = []
    count = 0
    for day in looked_at:
        of_day = alarms(attempts, publishes, gauges, day).persist()
        count += of_day.count()
        found += collect(of_day.orderBy(F.desc("deviation"), "kind", "name", "measure"), MOST_ROWS)
        of_day.unpersist()
    found.sort(key=lambda row: (row["severity"] != "critical", -row["deviation"], row["name"]))
    return Section(
        "anomalies",
        "What was unusual",
        f"Each hour of the last {len(looked_at)} days beside the same hour of up to {DAYS} days "
        f"before; with fewer than {MIN_DAYS} of them nothing is said.",
        _figures(found, count),
        _findings(found, looked_at),
        [
            Block(
                "Topics with unusual traffic",
                "Events published; what was unusual is shaded.",
                _pictures(found, publishes, days),
            ),
            Block("Alarms", "The most severe first.", _table(found[:MOST_ROWS], count)),
        ],
    )


def _figures(found: Sequence[Row], count: int) -> list[Figure]:
    critical = sum(row["severity"] == "critical" for row in found)
    return [
        Figure(words.count(count), "alarms"),
        Figure(words.count(critical), "of them critical"),
        Figure(words.count(len({row["name"] for row in found if row["kind"] == "subscriber"})),
               "subscribers concerned"),
        Figure(words.count(len({row["name"] for row in found if row["kind"] == "topic"})),
               "topics concerned"),
    ]  # fmt: skip


def _findings(found: Sequence[Row], looked_at: Sequence[date]) -> list[Finding]:
    if not found:
        return [Finding(GOOD, f"Nothing was unusual in the last {len(looked_at)} days.")]
    return [_of(row) for row in found[:MOST_SAID]]


def _of(row: Row) -> Finding:
    show = SHOWN[row["measure"]]
    who = f"topic {row['name']}" if row["kind"] == "topic" else row["name"]
    is_silent = row["measure"] == "events" and not row["value"]
    what = "no events" if is_silent else f"{NAMES[row['measure']]} at {show(row['value'])}"
    text = f"{who}: {what} {words.span(row['since'], row['until'])}; {show(row['usual'])} is usual."
    # What a subscriber did the other reports explain; of a topic only this one speaks.
    is_news = row["kind"] == "topic" and row["severity"] == "critical"
    return Finding(BAD if is_news else WARN, text, row["deviation"] / 1e6)


def _pictures(found: Sequence[Row], publishes: DataFrame, days: Days) -> Safe:
    names = list(dict.fromkeys(row["name"] for row in found if row["kind"] == "topic"))
    names = names[:MOST_PICTURES]
    start = F.floor(ms("minute") / days.period_ms) * days.period_ms
    sums = only(publishes, "topic", names).groupBy("topic", start.alias("start_ms"))
    each = of_each(collect(sums.agg(F.sum("events").alias("events"))), "topic") if names else {}
    lines = [
        Line(name, [v or 0 for v in by_period(each.get(name, []), days, "events")[0]], color)
        for color, name in enumerate(names, 1)
    ]
    marks = [
        Mark(millis_of(row["since"]), millis_of(row["until"]), _of(row).text)
        for row in found
        if row["kind"] == "topic" and row["name"] in names
    ]
    return line_chart("Events published in topics with alarms", days.starts_ms, lines, marks=marks)


def _table(found: Sequence[Row], count: int) -> Safe:
    columns = [
        Column("Who", False),
        Column("What", False),
        Column("From", False),
        Column("Hours"),
        Column("Was"),
        Column("Usual"),
        Column("Spread", hint="how far it usually is from the usual"),
        Column("Deviation", hint="in spreads"),
        Column("Severity", False),
    ]
    cells = []
    for row in found:
        show = SHOWN[row["measure"]]
        cells.append(
            [
                Cell(row["name"]),
                Cell(NAMES[row["measure"]]),
                Cell(words.moment(row["since"]), row["since"].isoformat()),
                Cell(words.count(row["hours"]), row["hours"]),
                *(Cell(show(row[name]), row[name]) for name in ("value", "usual", "spread")),
                Cell(words.count(round(row["deviation"], 1)), row["deviation"]),
                Cell(badge(row["severity"], "bad" if row["severity"] == "critical" else "warn")),
            ]
        )
    return table("Alarms", columns, cells, left_out(len(cells), count, "alarms"))


assert NAMES.keys() == SHOWN.keys() == MEASURES.keys()

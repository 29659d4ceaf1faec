"""The traffic report as a page: what is published, and whom it costs what to deliver."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routemaster.domain.datasets import ATTEMPTS, GAUGES, PUBLISHES
from spark_jobs.html import words
from spark_jobs.html.lines import Line, line_chart
from spark_jobs.html.markup import Safe
from spark_jobs.html.page import NOTE, WARN, Block, Figure, Finding, Section
from spark_jobs.html.tables import Cell, Column, left_out, table
from spark_jobs.html.timelines import spark_line
from spark_jobs.pages.days import Days
from spark_jobs.pages.rows import Row, by_period, collect, ms, of_each, one, only
from spark_jobs.reading import Export
from spark_jobs.traffic_report import costs, topics

MOST_LINES, MOST_TOPICS, MOST_SUBSCRIBERS = 5, 40, 40
SUMS = ("events", "bytes", "fanout")
COSTS = (
    "attempts",
    "failed_attempts",
    "events",
    "bytes",
    "slot_seconds",
    "failed_slot_seconds",
    "redis_byte_seconds",
)
# Shares of the whole that one alone should not have.
LARGE, WASTED = 0.2, 0.5


def section(export: Export, days: Days, options: Namespace) -> Section:
    by_topic = topics(export.read(PUBLISHES), days.by).withColumn("start_ms", ms("start")).persist()
    paid = costs(export.read(ATTEMPTS), export.read(GAUGES), days.by).persist()
    try:
        whole = one(by_topic.agg(*(F.sum(name).alias(name) for name in SUMS)))
        cost = one(paid.agg(*(F.sum(name).alias(name) for name in COSTS)))
        named = collect(_topics(by_topic), MOST_TOPICS)
        payers = paid.groupBy("subscriber").agg(*(F.sum(name).alias(name) for name in COSTS))
        payers = payers.persist()
        dearest = collect(payers.orderBy(F.desc("slot_seconds"), "subscriber"), MOST_SUBSCRIBERS)
        return Section(
            "traffic",
            "Traffic and cost",
            "What is published in which topic, and what it takes to deliver it.",
            _figures(whole, cost, days),
            _findings(named, whole, dearest, cost),
            [
                Block(
                    "Events accepted",
                    f"Per {days.by}: all, and the busiest topics.",
                    _events(by_topic, named, days),
                ),
                Block(
                    "Topics",
                    "The busiest first. Fan-out is how many subscribers get one event.",
                    _topic_table(named, by_topic, days, _count(by_topic, "topic")),
                ),
                Block(
                    "What subscribers cost",
                    "A delivery holds a slot for as long as the answer "
                    "takes; what waits holds memory.",
                    _cost_table(dearest, cost, payers.count()),
                ),
            ],
        )
    finally:
        by_topic.unpersist()
        paid.unpersist()


def _count(df: DataFrame, key: str) -> int:
    return df.select(key).distinct().count()


def _topics(by_topic: DataFrame) -> DataFrame:
    sums = by_topic.groupBy("topic").agg(
        F.max_by("publisher", "start").alias("publisher"),
        *(F.sum(name).alias(name) for name in SUMS),
    )
    return sums.orderBy(F.desc("events"), "topic")


def _figures(whole: Row, cost: Row, days: Days) -> list[Figure]:
    seconds = (days.end_ms - days.first_ms) / 1000
    slots = (cost["slot_seconds"] or 0) / seconds
    return [
        Figure(words.count(whole["events"] or 0), "events accepted"),
        Figure(words.count((whole["events"] or 0) / seconds), "a second, on average"),
        Figure(
            words.decimal((whole["fanout"] or 0) / whole["events"], 1)
            if whole["events"]
            else "\u2013",
            "subscribers for each event",
        ),
        Figure(words.size(cost["bytes"] or 0), "sent"),
        Figure(words.decimal(slots, 2), "delivery slots in use, on average"),
    ]


def _findings(named: Sequence[Row], whole: Row, dearest: Sequence[Row], cost: Row) -> list[Finding]:
    found = []
    for row in named[:1]:
        share = row["events"] / whole["events"]
        found.append(
            Finding(
                NOTE,
                f"{row['topic']} is the busiest topic: {words.percent(share)} of "
                f"all events, {words.count(row['events'])}.",
            )
        )
    for row in dearest:
        slots = row["slot_seconds"] / cost["slot_seconds"] if cost["slot_seconds"] else 0
        wasted = row["failed_slot_seconds"] / row["slot_seconds"] if row["slot_seconds"] else 0
        if slots >= LARGE:
            found.append(
                Finding(
                    WARN,
                    f"{row['subscriber']} alone took {words.percent(slots)} of the "
                    "time of all deliveries.",
                    slots,
                )
            )
        if wasted >= WASTED and row["failed_slot_seconds"] >= LARGE / 10 * cost["slot_seconds"]:
            text = (
                f"{words.percent(wasted)} of the time spent on {row['subscriber']} went into "
                "attempts that failed."
            )
            found.append(Finding(WARN, text, wasted))
    return found


def _events(by_topic: DataFrame, named: Sequence[Row], days: Days) -> Safe:
    names = [row["topic"] for row in named[:MOST_LINES]]
    some = only(by_topic.select("topic", "start_ms", "events"), "topic", names)
    each = of_each(collect(some), "topic")
    summed = collect(by_topic.groupBy("start_ms").agg(F.sum("events").alias("events")))
    lines = [Line("all", by_period(summed, days, "events")[0], 6, is_area=True)]
    for color, name in enumerate(names, 1):
        lines.append(Line(name, by_period(each[name], days, "events")[0], color))
    return line_chart("Events accepted, by topic", days.starts_ms, lines)


def _topic_table(named: Sequence[Row], by_topic: DataFrame, days: Days, count: int) -> Safe:
    some = only(
        by_topic.select("topic", "start_ms", "events"), "topic", [r["topic"] for r in named]
    )
    each = of_each(collect(some), "topic")
    columns = [
        Column("Topic", False),
        Column("Owner", False),
        Column(f"Events per {days.by}", False),
        Column("Events"),
        Column("Size"),
        Column("Bytes / event"),
        Column("Fan-out"),
    ]
    cells = []
    for row in named:
        (line,) = by_period(each[row["topic"]], days, "events")
        events = row["events"] or 1
        cells.append(
            [
                Cell(row["topic"]),
                Cell(row["publisher"] or "nobody"),
                Cell(spark_line(f"{row['topic']}: events per {days.by}", [v or 0 for v in line])),
                Cell(words.count(row["events"]), row["events"]),
                Cell(words.size(row["bytes"]), row["bytes"]),
                Cell(words.count(round(row["bytes"] / events)), row["bytes"] / events),
                Cell(words.decimal(row["fanout"] / events, 1), row["fanout"] / events),
            ]
        )
    return table("Events by topic", columns, cells, left_out(len(cells), count, "topics"))


def _cost_table(dearest: Sequence[Row], cost: Row, count: int) -> Safe:
    columns = [
        Column("Subscriber", False),
        Column("Attempts"),
        Column("Failed"),
        Column("Sent"),
        Column("Slot time"),
        Column("of all"),
        Column("in failures"),
        Column("Memory held", hint="What waited, times how long"),
    ]
    cells = []
    for row in dearest:
        share = row["slot_seconds"] / cost["slot_seconds"] if cost["slot_seconds"] else None
        wasted = row["failed_slot_seconds"] / row["slot_seconds"] if row["slot_seconds"] else None
        held = row["redis_byte_seconds"]
        cells.append(
            [
                Cell(row["subscriber"]),
                Cell(words.count(row["attempts"]), row["attempts"]),
                Cell(words.count(row["failed_attempts"]), row["failed_attempts"]),
                Cell(words.size(row["bytes"]), row["bytes"]),
                Cell(words.duration(row["slot_seconds"]), row["slot_seconds"]),
                Cell(words.percent(share), share),
                Cell(words.percent(wasted), wasted),
                Cell(f"{words.size(held / 3600 if held is not None else None)}\u00b7h", held),
            ]
        )
    return table("Cost by subscriber", columns, cells, left_out(len(cells), count, "subscribers"))

"""The backlog report as a page: what waits, whether memory lasts, and what was given up."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routemaster.domain.datasets import COUNTERS, DROPS, GAUGES
from spark_jobs.backlog_report import MEMORY, depth, forecast, losses, memory
from spark_jobs.html import words
from spark_jobs.html.lines import Line, line_chart
from spark_jobs.html.markup import Safe
from spark_jobs.html.page import BAD, GOOD, NOTE, WARN, Block, Figure, Finding, Section
from spark_jobs.html.tables import Cell, Column, badge, left_out, table
from spark_jobs.html.timelines import spark_line
from spark_jobs.pages.days import Days
from spark_jobs.pages.rows import Row, by_period, collect, ms, of_each, one, only
from spark_jobs.reading import Export
from spark_jobs.timeline import last_time

MOST_LINES, MOST_ROWS, MOST_LOSSES = 5, 40, 40
TREND_LEVELS = {"growing": "bad", "steady": "warn", "draining": "note", "empty": "good"}
# Somebody should look at what has waited for longer.
OLD_SECONDS = 3600
# What is lost is said before what only waits.
LOST_FIRST = 1e9


def section(export: Export, days: Days, options: Namespace) -> Section:
    gauges = export.read(GAUGES)
    rows = depth(gauges, export.read(COUNTERS), days.by).withColumn("start_ms", ms("start"))
    rows = rows.persist()
    try:
        until = last_time((gauges, GAUGES))
        waiting = forecast(gauges, until).where(F.col("events") > 0)
        count = waiting.count()
        queues = collect(waiting.orderBy(F.desc("events"), "subscriber"), MOST_ROWS)
        lost = losses(export.read(DROPS)).persist()
        by_subscriber = collect(_lost_by_subscriber(lost), MOST_LOSSES)
        ranges = collect(
            lost.orderBy(F.desc("events"), "subscriber", "lane", "first_seq"), MOST_LOSSES
        )
        used = one(memory(gauges, until))
        return Section(
            "backlog",
            "What waits",
            "What is queued for each subscriber, how it grows and drains, and what was given up.",
            _figures(queues, by_subscriber, used),
            _findings(queues, by_subscriber, used),
            [
                Block(
                    "Events waiting",
                    "The most at once in each period, all subscribers together.",
                    _all(rows, days),
                ),
                Block(
                    "Who they wait for",
                    f"The {MOST_LINES} who had most waiting.",
                    _deepest(rows, days),
                ),
                Block(
                    "Memory",
                    "What Redis uses. Above the mark the oldest batches of who holds most "
                    "are given up.",
                    _memory(gauges, days),
                ),
                Block(
                    "Still waiting at the end",
                    "If it goes on as in the last hour.",
                    _queues(queues, rows, count, days),
                ),
                Block(
                    "Given up",
                    "Ranges of numbers of a lane; whoever wants these events has to ask "
                    "their publisher.",
                    _losses(ranges, lost.count()),
                ),
            ],
        )
    finally:
        rows.unpersist()


def _lost_by_subscriber(lost: DataFrame) -> DataFrame:
    return (
        lost.groupBy("subscriber", "reason")
        .agg(
            F.sum("events").alias("events"),
            F.min("first_seq").alias("first_seq"),
            F.max("last_seq").alias("last_seq"),
            F.min("dropped_from").alias("dropped_from"),
            F.max("dropped_until").alias("dropped_until"),
        )
        .orderBy(F.desc("events"), "subscriber", "reason")
    )


def _figures(queues: Sequence[Row], lost: Sequence[Row], used: Row) -> list[Figure]:
    share = used["used_bytes"] / used["high_bytes"] if used.get("high_bytes") else None
    return [
        Figure(words.count(sum(row["events"] for row in queues)), "events waiting at the end"),
        Figure(
            words.duration(max((row["age_seconds"] for row in queues), default=0)),
            "the oldest of them has waited",
        ),
        Figure(words.count(sum(row["events"] for row in lost)), "events given up"),
        Figure(words.percent(share), "of the memory mark in use"),
    ]


def _findings(queues: Sequence[Row], lost: Sequence[Row], used: Row) -> list[Finding]:
    found = [_of_loss(row) for row in lost]
    found += [_of_queue(row) for row in queues if row["age_seconds"] >= OLD_SECONDS]
    if used.get("seconds_to_high"):
        found.append(
            Finding(
                WARN,
                f"Memory reaches its mark in {words.duration(used['seconds_to_high'])} "
                "if it goes on as in the last hour.",
            )
        )
    if not lost:
        found.append(Finding(GOOD, "Nothing was given up."))
    return found


def _of_loss(row: Row) -> Finding:
    why = "because memory was short" if row["reason"] == "memory" else f"by {row['reason']}"
    text = (
        f"{row['subscriber']} lost {words.exact(row['events'])} events {why}, "
        f"{words.span(row['dropped_from'], row['dropped_until'])}, the oldest first; their numbers "
        f"lie between {words.exact(row['first_seq'])} and {words.exact(row['last_seq'])}."
    )
    return Finding(BAD, text, LOST_FIRST + row["events"])


def _of_queue(row: Row) -> Finding:
    rate = row["growth_per_second"] or 0
    trend = {
        "growing": f"growing by {words.count(round(rate * 3600))} an hour",
        "draining": f"empty in {words.duration(row['seconds_to_drain'])} if it goes on like this",
    }.get(row["trend"], "neither growing nor draining")
    text = (
        f"{words.exact(row['events'])} events wait for {row['subscriber']}, the oldest for "
        f"{words.duration(row['age_seconds'])}; {trend}."
    )
    return Finding(NOTE if row["trend"] == "draining" else BAD, text, row["age_seconds"])


def _all(rows: DataFrame, days: Days) -> Safe:
    summed = collect(rows.groupBy("start_ms").agg(F.sum("events_max").alias("events")))
    (events,) = by_period(summed, days, "events")
    label = f"Events waiting for all subscribers, the most in each {days.by}"
    return line_chart(label, days.starts_ms, [Line("all", events, 1, is_area=True)])


def _deepest(rows: DataFrame, days: Days) -> Safe:
    most = rows.groupBy("subscriber").agg(F.max("events_max").alias("most")).where("most > 0")
    names = [
        row["subscriber"] for row in collect(most.orderBy(F.desc("most"), "subscriber"), MOST_LINES)
    ]
    each = of_each(
        collect(only(rows.select("subscriber", "start_ms", "events_max"), "subscriber", names)),
        "subscriber",
    )
    lines = [
        Line(name, by_period(each[name], days, "events_max")[0], color)
        for color, name in enumerate(names, 1)
    ]
    return line_chart("Events waiting, by subscriber", days.starts_ms, lines)


def _memory(gauges: DataFrame, days: Days) -> Safe:
    start = F.floor(ms("taken_at") / days.period_ms) * days.period_ms
    known = gauges.where(F.col("name").isin(*MEMORY)).groupBy(start.alias("start_ms"))
    rows = collect(known.pivot("name", list(MEMORY)).agg(F.max("value")))
    used, high, _ = by_period(rows, days, *MEMORY)
    lines = [Line("in use", used, 1, is_area=True), Line("mark", high, 2)]
    return line_chart(
        "Memory of Redis in use, and its mark",
        days.starts_ms,
        lines,
        show=words.size,
        tick_unit=2.0**20,
    )


def _queues(queues: Sequence[Row], rows: DataFrame, count: int, days: Days) -> Safe:
    names = [row["subscriber"] for row in queues]
    past = of_each(
        collect(only(rows.select("subscriber", "start_ms", "events_last"), "subscriber", names)),
        "subscriber",
    )
    columns = [
        Column("Subscriber", False),
        Column("Waiting", False),
        Column("Events"),
        Column("Batches"),
        Column("Oldest"),
        Column("Trend", False),
        Column("Events / hour"),
        Column("Empty in"),
    ]
    cells = []
    for row in queues:
        name, growth = row["subscriber"], (row["growth_per_second"] or 0) * 3600
        (line,) = by_period(past.get(name, []), days, "events_last")
        cells.append(
            [
                Cell(name),
                Cell(spark_line(f"{name}: events waiting", line)),
                Cell(words.exact(row["events"]), row["events"]),
                Cell(words.exact(row["batches"]), row["batches"]),
                Cell(words.duration(row["age_seconds"]), row["age_seconds"]),
                Cell(badge(row["trend"], TREND_LEVELS[row["trend"]]), row["trend"]),
                Cell(f"{growth:+,.0f}", growth),
                Cell(words.duration(row["seconds_to_drain"]), row["seconds_to_drain"]),
            ]
        )
    return table("Queues at the end", columns, cells, left_out(len(cells), count, "queues"))


def _losses(lost: Sequence[Row], count: int) -> Safe:
    columns = [
        Column("Subscriber", False),
        Column("Lane", False),
        Column("Reason", False),
        Column("From number"),
        Column("To number"),
        Column("Events"),
        Column("First given up", False),
        Column("Last", False),
    ]
    cells = [
        [
            Cell(row["subscriber"]),
            Cell(row["lane"]),
            Cell(row["reason"]),
            Cell(words.exact(row["first_seq"]), row["first_seq"]),
            Cell(words.exact(row["last_seq"]), row["last_seq"]),
            Cell(words.exact(row["events"]), row["events"]),
            Cell(words.moment(row["dropped_from"]), row["dropped_from"].isoformat()),
            Cell(words.moment(row["dropped_until"]), row["dropped_until"].isoformat()),
        ]
        for row in lost
    ]
    return table("Events that were given up", columns, cells, left_out(len(cells), count, "ranges"))

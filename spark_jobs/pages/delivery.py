"""The delivery report as a page: what was tried, what failed, and how long it took."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routemaster.domain.datasets import ATTEMPTS, COUNTERS
from spark_jobs.delivery_report import report, tried
from spark_jobs.html import words
from spark_jobs.html.bars import Bar, bar_chart
from spark_jobs.html.heat import HeatRow, heat_map
from spark_jobs.html.lines import Line, line_chart
from spark_jobs.html.markup import Safe
from spark_jobs.html.page import BAD, GOOD, NOTE, WARN, Block, Figure, Finding, Section
from spark_jobs.html.tables import Cell, Column, badge, left_out, table
from spark_jobs.html.timelines import spark_line
from spark_jobs.pages.days import Days
from spark_jobs.pages.rows import Row, by_period, collect, ms, of_each, one, only
from spark_jobs.reading import Export

MOST_CELLS_ROWS, MOST_TABLE_ROWS, MOST_ERRORS = 30, 60, 12
PERCENTS = (0.5, 0.95, 0.99)
# Values at the ranks are off by at most one in so many of the rows.
ACCURACY = 1000
# Shares of attempts that failed, and how they are called.
LEVELS = (0.0, 0.02, 0.1, 0.3, 0.7)
LEGEND = ("none failed", "up to 2%", "to 10%", "to 30%", "to 70%", "more failed")
# With fewer attempts a share says little.
LEAST_ATTEMPTS = 20
FAILING, POOR = 0.5, 0.98
# The upper ends of the bars, in ms.
BARS_MS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
SUMS = ("events", "batches", "attempts", "failed", "gone", "throttled", "first_attempts")


def section(export: Export, days: Days, options: Namespace) -> Section:
    attempts = export.read(ATTEMPTS)
    rows = report(
        attempts, export.read(COUNTERS, with_day_before=True), by=days.by, percentiles=False
    )
    rows = export.only_wanted(rows, "period").withColumn("start_ms", ms("period")).persist()
    try:
        return _section(rows, attempts, days)
    finally:
        rows.unpersist()


def _section(rows: DataFrame, attempts: DataFrame, days: Days) -> Section:
    whole = one(rows.agg(*(F.sum(name).alias(name) for name in SUMS)))
    periods = collect(_summed(rows, "start_ms"))
    worst_first = _summed(rows, "subscriber").orderBy(
        F.desc(F.col("failed") + F.col("gone")), F.desc("attempts"), "subscriber"
    )
    subscribers = collect(worst_first, MOST_TABLE_ROWS)
    count = rows.select("subscriber").distinct().count()
    names = [row["subscriber"] for row in subscribers]
    cells = of_each(
        collect(only(rows.drop("by_error", "by_status"), "subscriber", names)), "subscriber"
    )
    timed = attempts.where(tried())
    took = of_each(collect(_took(only(timed, "subscriber", names), F.col("subscriber"))), "key")
    errors = collect(_errors(rows), MOST_ERRORS)
    return Section(
        "delivery",
        "Delivery",
        "Every request to a subscriber, by the time it ended.",
        _figures(whole),
        _findings(whole, subscribers),
        [
            Block(
                "Where deliveries failed", _heat_about(count, days), _heat(subscribers, cells, days)
            ),
            Block("Attempts", f"Per {days.by}, all subscribers.", _attempts(periods, days)),
            Block(
                "Time to answer",
                "Of one attempt, all subscribers, on a log scale. The band "
                "spans half of the attempts to 95% of them.",
                _latency(timed, days),
            ),
            Block(
                "How long answers took",
                "Attempts by the time until the answer, or until it was given up.",
                _distribution(timed),
            ),
            Block("Why they failed", "By class of error and who had it most.", _reasons(errors)),
            Block(
                "Subscribers",
                "Those with most failed attempts first.",
                _table(subscribers, cells, took, count, days),
            ),
        ],
    )


def _summed(rows: DataFrame, key: str) -> DataFrame:
    return rows.groupBy(key).agg(*(F.sum(name).alias(name) for name in SUMS))


def _took(attempts: DataFrame, key: SparkColumn) -> DataFrame:
    ranks = F.percentile_approx("took_ms", list(PERCENTS), ACCURACY).alias("took")
    return attempts.groupBy(key.alias("key")).agg(ranks)


def _errors(rows: DataFrame) -> DataFrame:
    each = rows.select("subscriber", F.explode("by_error").alias("error", "count"))
    by_both = each.groupBy("error", "subscriber").agg(F.sum("count").alias("count"))
    return (
        by_both.groupBy("error")
        .agg(
            F.sum("count").alias("count"),
            F.count(F.lit(1)).alias("subscribers"),
            F.max_by("subscriber", "count").alias("most"),
            F.max("count").alias("most_count"),
        )
        .orderBy(F.desc("count"))
    )


def _figures(whole: Row) -> list[Figure]:
    attempts, batches = whole["attempts"] or 0, whole["batches"] or 0
    return [
        Figure(words.percent(batches / attempts if attempts else None), "attempts that succeeded"),
        Figure(words.count(whole["events"]), "events delivered"),
        Figure(words.decimal(attempts / batches if batches else None), "attempts per batch"),
        Figure(words.count(whole["throttled"] or 0), "times a subscriber asked to wait"),
    ]


def _findings(whole: Row, subscribers: Sequence[Row]) -> list[Finding]:
    found = []
    for row in subscribers:
        if row["attempts"] < LEAST_ATTEMPTS:
            continue
        share = row["batches"] / row["attempts"]
        if share < POOR:
            text = f"{words.percent(share)} of the attempts at {row['subscriber']} succeeded"
            tries = row["attempts"] / row["batches"] if row["batches"] else 0
            text += f"; a batch took {tries:.1f} attempts." if tries >= 1.1 else "."
            found.append(Finding(BAD if share < FAILING else WARN, text, 1 - share))
        if row["throttled"] > row["attempts"] / 10:
            found.append(
                Finding(
                    NOTE,
                    f"{row['subscriber']} asked to wait {words.count(row['throttled'])} times, "
                    f"beside {words.count(row['attempts'])} attempts.",
                )
            )
    if whole["attempts"] and not found:
        share = whole["batches"] / whole["attempts"]
        found.append(
            Finding(
                GOOD,
                f"{words.percent(share)} of all attempts succeeded, and no "
                f"subscriber took less than {POOR:.0%} of its own.",
            )
        )
    return found


def _heat_about(count: int, days: Days) -> str:
    shown = min(count, MOST_CELLS_ROWS)
    about = f"Each cell is one subscriber for one {days.by}"
    return (
        f"{about}; the {shown} of {count} with most failed attempts."
        if shown < count
        else f"{about}."
    )


def level_of(share: float) -> int:
    return next((n for n, most in enumerate(LEVELS) if share <= most), len(LEVELS))


def _heat(subscribers: Sequence[Row], cells: dict[str, list[Row]], days: Days) -> Safe:
    drawn = []
    for row in subscribers[:MOST_CELLS_ROWS]:
        name = row["subscriber"]
        (attempts, batches) = by_period(cells.get(name, []), days, "attempts", "batches")
        levels = [
            level_of(1 - b / a) if a else None for a, b in zip(attempts, batches, strict=True)
        ]
        titles = {
            at: f"{name}, {words.moment_ms(days.starts_ms[at])}: "
            f"{words.count(attempts[at] - batches[at])}"
            f" of {words.count(attempts[at])} attempts failed"
            for at, level in enumerate(levels)
            if level
        }
        drawn.append(HeatRow(name, levels, titles))
    return heat_map("Share of failed attempts by subscriber", days.starts_ms, drawn, LEGEND)


def _attempts(periods: Sequence[Row], days: Days) -> Safe:
    attempts, batches = by_period(periods, days, "attempts", "batches")
    failed = [a - b if a is not None else None for a, b in zip(attempts, batches, strict=True)]
    lines = [Line("all", attempts, 1, is_area=True), Line("failed", failed, 2)]
    return line_chart(f"Attempts per {days.by}, and how many of them failed", days.starts_ms, lines)


def _latency(timed: DataFrame, days: Days) -> Safe:
    start = F.floor(ms("finished_at") / days.period_ms) * days.period_ms
    rows = [{"start_ms": row["key"], "took": row["took"]} for row in collect(_took(timed, start))]
    (took,) = by_period(rows, days, "took")
    p50, p95, p99 = ([ranks[n] if ranks else None for ranks in took] for n in range(3))
    lines = [Line("p99", p99, 2), Line("p95", p95, 1, low=p50), Line("p50", p50, 1)]
    return line_chart(
        "Time to answer: 50th, 95th and 99th percentile",
        days.starts_ms,
        lines,
        show=words.millis,
        show_tick=words.millis_tick,
        is_log=True,
    )


def _distribution(timed: DataFrame) -> Safe:
    place = F.lit(len(BARS_MS))
    for n in reversed(range(len(BARS_MS))):
        place = F.when(F.col("took_ms") <= BARS_MS[n], n).otherwise(place)
    counts = timed.groupBy(place.alias("place")).agg(F.count(F.lit(1)).alias("count"))
    known = {row["place"]: row["count"] for row in collect(counts)}
    names = [f"\u2264 {words.millis(most)}" for most in BARS_MS] + ["longer"]
    bars = [Bar(name, known.get(n, 0)) for n, name in enumerate(names)]
    return bar_chart("Attempts by time to answer", bars)


def _reasons(errors: Sequence[Row]) -> Safe:
    columns = [
        Column("Error", False),
        Column("Attempts"),
        Column("Subscribers"),
        Column("Most at", False),
        Column("of these"),
    ]
    rows = [
        [
            Cell(row["error"]),
            Cell(words.count(row["count"]), row["count"]),
            Cell(words.count(row["subscribers"])),
            Cell(row["most"]),
            Cell(words.count(row["most_count"]), row["most_count"]),
        ]
        for row in errors
    ]
    return table("Attempts that failed, by class of error", columns, rows)


def _table(
    subscribers: Sequence[Row],
    cells: dict[str, list[Row]],
    took: dict[str, list[Row]],
    count: int,
    days: Days,
) -> Safe:
    columns = [
        Column("Subscriber", False),
        Column(f"Attempts per {days.by}", False),
        Column("Attempts"),
        Column("Success"),
        Column("Attempts / batch"),
        Column("Events"),
        Column("p50"),
        Column("p95"),
        Column("p99"),
    ]
    rows = []
    for row in subscribers:
        name, attempts, batches = row["subscriber"], row["attempts"], row["batches"]
        (hours,) = by_period(cells.get(name, []), days, "attempts")
        share = batches / attempts if attempts else None
        tries = attempts / batches if batches else None
        ranks = took[name][0]["took"] if name in took else [None] * len(PERCENTS)
        level = "good" if share is None or share >= POOR else "warn" if share >= FAILING else "bad"
        rows.append(
            [
                Cell(name),
                Cell(spark_line(f"{name}: attempts per {days.by}", hours), attempts),
                Cell(words.count(attempts), attempts),
                Cell(badge(words.percent(share), level), share),
                Cell(words.decimal(tries), tries),
                Cell(words.count(row["events"]), row["events"]),
                *(Cell(words.millis(value), value) for value in ranks),
            ]
        )
    return table(
        "Deliveries by subscriber", columns, rows, left_out(len(rows), count, "subscribers")
    )

"""The objectives report as a page: who arrived in time, and where the error budget went."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routemaster.domain.datasets import ATTEMPTS, DROPS
from spark_jobs.html import words
from spark_jobs.html.heat import HeatRow, heat_map
from spark_jobs.html.lines import Line, line_chart
from spark_jobs.html.markup import Safe
from spark_jobs.html.page import BAD, GOOD, WARN, Block, Figure, Finding, Section
from spark_jobs.html.tables import Cell, Column, badge, left_out, table
from spark_jobs.pages.days import Days
from spark_jobs.pages.rows import Row, by_period, collect, ms, of_each, only
from spark_jobs.reading import Export
from spark_jobs.slo_report import attainment, objectives_of, spending
from spark_jobs.timeline import last_time

MOST_HEAT_ROWS, MOST_ROWS, MOST_SAID = 30, 60, 10
# How fast the budget is used in a period: 1 is what is allowed all the time.
LEVELS = (0.0, 1.0, 3.0, 6.0, 14.4)
COUNTS = ("events", "late", "dropped", "overdue")
LEGEND = ("none missed", "within budget", "1 to 3 times", "to 6 times", "to 14.4 times", "faster")


def section(export: Export, days: Days, options: Namespace) -> Section:
    objectives = objectives_of(options)
    attempts, drops = export.read(ATTEMPTS), export.read(DROPS)
    until = last_time((attempts, ATTEMPTS), (drops, DROPS))
    rows = attainment(attempts, drops, objectives, until).persist()
    spent = spending(attempts, drops, objectives, days.by).withColumn("start_ms", ms("start"))
    spent = spent.persist()
    try:
        return _section(rows, spent, days)
    finally:
        rows.unpersist()
        spent.unpersist()


def _section(rows: DataFrame, spent: DataFrame, days: Days) -> Section:
    whole = rows.where("window = 'whole'")
    sums = collect(
        whole.agg(
            F.count(F.lit(1)).alias("count"),
            F.count_if("met").alias("met"),
            *(F.sum(name).alias(name) for name in ("events", "good", "late", "dropped", "overdue")),
        )
    )[0]
    worst = collect(whole.orderBy("worst"), MOST_ROWS)
    names = [row["subscriber"] for row in worst]
    recent = of_each(
        collect(only(rows.where("window != 'whole'"), "subscriber", names)), "subscriber"
    )
    cells = of_each(collect(only(spent, "subscriber", names[:MOST_HEAT_ROWS])), "subscriber")
    periods = spent.groupBy("start_ms").agg(
        F.sum("events").alias("events"), F.sum("good").alias("good")
    )
    about = (
        f"Each cell is one subscriber for one {days.by}, coloured by how fast it used its budget."
    )
    return Section(
        "slo",
        "Objectives",
        "Which share of the events was acknowledged in time, and how much may still miss.",
        _figures(sums),
        _findings(worst, sums),
        [
            Block("Where the error budget went", about, _heat(worst, cells, days)),
            Block("In time", f"Share of all events whose fate was known in each {days.by}.",
                  _in_time(collect(periods), days)),
            Block("Subscribers", "Those who overdrew their budget by most events first.",
                  _table(worst, recent, sums["count"])),
        ],
    )  # fmt: skip


def _figures(sums: Row) -> list[Figure]:
    events = sums["events"]
    return [
        Figure(words.percent(sums["good"] / events if events else None), "of all events in time"),
        Figure(f"{sums['met']} of {sums['count']}", "subscribers met their objective"),
        Figure(words.count(sums["late"] or 0), "events late"),
        Figure(words.count((sums["dropped"] or 0) + (sums["overdue"] or 0)), "lost or overdue"),
    ]


def _findings(worst: Sequence[Row], sums: Row) -> list[Finding]:
    missed = [row for row in worst if not row["met"]]
    found = [_of(row) for row in missed[:MOST_SAID]]
    more = sums["count"] - sums["met"] - len(found)
    if more > 0:
        found.append(
            Finding(WARN, f"{words.plural(more, 'more subscriber')} missed the objective by less.")
        )
    if sums["count"] and not missed:
        found.append(Finding(GOOD, f"All {sums['count']} subscribers met their objective."))
    return found


def _of(row: Row) -> Finding:
    parts = [
        f"{words.exact(row[fate])} {fate}" for fate in ("late", "dropped", "overdue") if row[fate]
    ]
    text = (
        f"{row['subscriber']} got {row['attainment_percent']:.4g}% of its events within "
        f"{words.duration(row['within_seconds'])}, not {row['target_percent']:g}%: "
        f"{', '.join(parts)} of {words.exact(row['events'])}."
    )
    burnt = row["burn_rate"]
    return Finding(BAD if burnt >= LEVELS[-1] else WARN, text, burnt)


def _heat(worst: Sequence[Row], cells: dict[str, list[Row]], days: Days) -> Safe:
    drawn = []
    for row in worst[:MOST_HEAT_ROWS]:
        name, allowed = row["subscriber"], 1 - row["target_percent"] / 100
        events, bad = by_period(cells.get(name, []), days, "events", "bad")
        burn = [b / e / allowed if e else None for e, b in zip(events, bad, strict=True)]
        levels = [None if rate is None else level_of(rate) for rate in burn]
        titles = {
            at: f"{name}, {words.moment_ms(days.starts_ms[at])}: {words.exact(bad[at])} of "
            f"{words.exact(events[at])} missed it, "
            f"{words.count(round(burn[at] or 0, 1))} times what is allowed"
            for at, level in enumerate(levels)
            if level
        }
        drawn.append(HeatRow(name, levels, titles))
    return heat_map("Use of the error budget by subscriber", days.starts_ms, drawn, LEGEND)


def level_of(rate: float) -> int:
    return next((n for n, most in enumerate(LEVELS) if rate <= most), len(LEVELS))


def _in_time(periods: Sequence[Row], days: Days) -> Safe:
    events, good = by_period(periods, days, "events", "good")
    shares = [100 * g / e if e else None for e, g in zip(events, good, strict=True)]
    line = Line("in time", shares, 1, is_area=True)
    return line_chart("Share of events in time, percent", days.starts_ms, [line], show=_percents)


def _percents(value: float | None) -> str:
    return words.NONE if value is None else f"{value:.3g}%"


def _table(worst: Sequence[Row], recent: dict[str, list[Row]], count: int) -> Safe:
    columns = [
        Column("Subscriber", False), Column("Objective", False), Column("In time"),
        Column("Budget left"), Column("Burn rate"), Column("last 6 h"), Column("last hour"),
        Column("Events"), Column("Late"), Column("Lost"), Column("Overdue"),
    ]  # fmt: skip
    cells = []
    for row in worst:
        burn = {one["window"]: one["burn_rate"] for one in recent.get(row["subscriber"], [])}
        share = row["attainment_percent"] / 100
        level = "good" if row["met"] else "bad" if row["burn_rate"] >= LEVELS[-1] else "warn"
        cells.append([
            Cell(row["subscriber"]),
            Cell(f"{row['target_percent']:g}% in {words.duration(row['within_seconds'])}"),
            Cell(badge(words.percent(share), level), share),
            Cell(f"{row['budget_left']:.0%}", row["budget_left"]),
            Cell(_times(row["burn_rate"]), row["burn_rate"]),
            *(Cell(_times(burn.get(window)), burn.get(window)) for window in ("6h", "1h")),
            *(Cell(words.count(row[name]), row[name]) for name in COUNTS),
        ])  # fmt: skip
    return table(
        "Objectives by subscriber", columns, cells, left_out(len(cells), count, "subscribers")
    )


def _times(rate: float | None) -> str:
    return words.NONE if rate is None else f"{rate:.1f}x" if rate < 100 else f"{rate:,.0f}x"

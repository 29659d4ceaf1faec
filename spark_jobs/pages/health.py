"""The health report as a page: who was out, since when, and who is well again."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from routemaster.domain.datasets import ATTEMPTS, GAUGES, HEALTH
from spark_jobs.html import words
from spark_jobs.html.lines import Mark
from spark_jobs.html.markup import Safe
from spark_jobs.html.page import BAD, GOOD, WARN, Block, Figure, Finding, Section
from spark_jobs.html.scales import millis_of
from spark_jobs.html.tables import Cell, Column, badge, left_out, table
from spark_jobs.html.timelines import Timeline, timelines
from spark_jobs.outages import find_outages
from spark_jobs.pages.days import Days
from spark_jobs.pages.rows import Row, collect, ms, of_each, one, only
from spark_jobs.ranking import rank
from spark_jobs.reading import Export
from spark_jobs.trajectory import by_period

MOST_OUTAGES, MOST_ROWS, MOST_TIMELINES, MOST_SAID = 60, 60, 16, 20
# A shorter one is in the table, and not worth a sentence.
SAID_SECONDS = 600
POOR, FAIR = 50, 80
# So many outages are said in one sentence.
MANY_OUTAGES = 5


def section(export: Export, days: Days, options: Namespace) -> Section:
    attempts, health, gauges = (export.read(each) for each in (ATTEMPTS, HEALTH, GAUGES))
    outages = find_outages(attempts, gauges).persist()
    # As health_report.report does, but looking for outages once.
    ranking = rank(attempts, health, outages).persist()
    try:
        return _section(ranking, outages, by_period(health, days.by), days)
    finally:
        ranking.unpersist()
        outages.unpersist()


def _section(ranking: DataFrame, outages: DataFrame, points: DataFrame, days: Days) -> Section:
    count, outage_count = ranking.count(), outages.count()
    ranked = collect(ranking.orderBy("rank"), MOST_ROWS)
    long = collect(outages.orderBy(F.desc("seconds"), "subscriber", "started_at"), MOST_OUTAGES)
    worst = [row["subscriber"] for row in ranked[:MOST_TIMELINES]]
    spells = of_each(collect(only(outages, "subscriber", worst)), "subscriber")
    trajectories = only(points.withColumn("start_ms", ms("period")), "subscriber", worst)
    points_of = of_each(collect(trajectories.orderBy("start_ms")), "subscriber")
    sums = one(
        ranking.agg(
            F.count_if(F.col("score") >= FAIR).alias("well"),
            F.count_if("is_dead").alias("dead"),
            F.count_if(F.col("is_flapping") | (F.col("outages") >= MANY_OUTAGES)).alias("flapping"),
        )
    )
    return Section(
        "health",
        "Health",
        "Who could not be delivered to, since when, how much waited, and whether it recovered.",
        _figures(sums, count, outage_count),
        _findings(ranked, long, sums, count),
        [
            Block(
                "Health points",
                f"The {len(worst)} with the lowest score. 100 is healthy: a failure costs 2, a "
                "delivery gives 1 back. Outages are shaded.",
                _timelines(worst, points_of, spells, days),
            ),
            Block("Outages", "The longest first.", _outages(long, outage_count)),
            Block("Subscribers", "The worst first.", _ranking(ranked, count)),
        ],
    )


def _figures(sums: Row, count: int, outages: int) -> list[Figure]:
    return [
        Figure(f"{sums['well'] or 0} of {count}", "subscribers are well"),
        Figure(words.count(outages), "outages"),
        Figure(words.count(sums["flapping"] or 0), "came and went"),
        Figure(words.count(sums["dead"] or 0), "look dead"),
    ]


def _findings(
    ranked: Sequence[Row], outages: Sequence[Row], sums: Row, count: int
) -> list[Finding]:
    found = []
    for row in ranked:
        if row["is_dead"]:
            found.append(_of_dead(row))
        elif came_and_went(row):
            found.append(_of_flapping(row))
    dead = {row["subscriber"] for row in ranked if row["is_dead"]}
    said = [
        row
        for row in outages
        if row["seconds"] >= SAID_SECONDS
        and not (row["ended_at"] is None and row["subscriber"] in dead)
    ]
    flapping = {row["subscriber"] for row in ranked if came_and_went(row)}
    found += [_of_outage(row) for row in said if row["subscriber"] not in flapping][:MOST_SAID]
    if count:
        found.append(Finding(GOOD, f"{sums['well']} of {count} subscribers are well."))
    return found


def came_and_went(row: Row) -> bool:
    return bool(row["is_flapping"]) or row["outages"] >= MANY_OUTAGES


def _of_dead(row: Row) -> Finding:
    last = row["last_delivered_at"]
    since = f"its last delivery was {words.moment(last)}" if last else "nothing was ever delivered"
    if row["last_state"] == "disabled":
        return Finding(BAD, f"{row['subscriber']} is disabled, as it answered 410; {since}.", 3e9)
    failed = words.plural(row["failed"], "attempt")
    return Finding(BAD, f"{row['subscriber']} looks dead; {since}, and {failed} failed.", 3e9)


def _of_flapping(row: Row) -> Finding:
    text = (
        f"{row['subscriber']} came and went: {words.plural(row['outages'], 'outage')}, "
        f"{words.duration(row['out_seconds'])} in all, and "
        f"{words.plural(row['most_runs_an_hour'], 'turn')} to failing in its worst hour."
    )
    return Finding(WARN, text, 1e9 + row["out_seconds"])


def _of_outage(row: Row) -> Finding:
    failures = words.plural(row["failures"], "attempt")
    waited = words.plural(row["events_waited"] or row["most_queued"] or 0, "event")
    if row["ended_at"] is None:
        text = (
            f"{row['subscriber']} has been failing since {words.moment(row['started_at'])} "
            f"({row['error']}): {failures}, {waited} waiting."
        )
        return Finding(BAD, text, 2e9 + row["seconds"])
    fate = f", all delivered by {words.clock(row['drained_at'])}" if row["drained_at"] else ""
    text = (
        f"{row['subscriber']} was failing {words.span(row['started_at'], row['ended_at'])} "
        f"({row['error']}): {failures} failed, {waited} waited{fate}."
    )
    return Finding(WARN if row["drained_at"] else BAD, text, row["seconds"])


def _timelines(
    worst: Sequence[str], points: dict[str, list[Row]], spells: dict[str, list[Row]], days: Days
) -> Safe:
    rows = []
    for name in worst:
        known = points.get(name, [])
        marks = []
        for row in spells.get(name, []):
            until_ms = millis_of(row["ended_at"]) if row["ended_at"] else days.end_ms
            marks.append(Mark(millis_of(row["started_at"]), until_ms, _of_outage(row).text))
        last = f"{known[-1]['last_points']:.0f}" if known else ""
        line = [(row["start_ms"], float(row["mean_points"])) for row in known]
        rows.append(Timeline(name, line, marks, last))
    return timelines("Health points by subscriber", days.first_ms, days.end_ms, rows)


def _outages(long: Sequence[Row], count: int) -> Safe:
    columns = [
        Column("Subscriber", False),
        Column("From", False),
        Column("To", False),
        Column("Lasted"),
        Column("Why", False),
        Column("Failed"),
        Column("Events waited", hint="accepted before its end, delivered then or later"),
        Column("Drained in", hint="from its end until the last of these was delivered"),
    ]
    cells = []
    for row in long:
        ended, waited = row["ended_at"], row["events_waited"] or row["most_queued"]
        cells.append(
            [
                Cell(row["subscriber"]),
                Cell(words.moment(row["started_at"]), row["started_at"].isoformat()),
                Cell(words.moment(ended) if ended else badge("still", "bad"), str(ended or "9")),
                Cell(words.duration(row["seconds"]), row["seconds"]),
                Cell(row["error"]),
                Cell(words.exact(row["failures"]), row["failures"]),
                Cell(words.exact(waited), waited),
                Cell(words.duration(row["recovery_seconds"]), row["recovery_seconds"]),
            ]
        )
    return table("Outages", columns, cells, left_out(len(cells), count, "outages"))


def _ranking(ranked: Sequence[Row], count: int) -> Safe:
    columns = [
        Column("Subscriber", False),
        Column("Score"),
        Column("Why", False),
        Column("Outages"),
        Column("Out for"),
        Column("Health"),
        Column("below 80", hint="how long its health points were below 80"),
    ]
    cells = []
    for row in ranked:
        score = row["score"]
        level = "good" if score >= FAIR else "warn" if score >= POOR else "bad"
        why = row["reasons"]
        cells.append(
            [
                Cell(row["subscriber"]),
                Cell(badge(f"{score:.0f}", level), score),
                Cell(why if isinstance(why, str) else ", ".join(why or ())),
                Cell(words.exact(row["outages"]), row["outages"]),
                Cell(words.duration(row["out_seconds"]), row["out_seconds"]),
                Cell(words.exact(row["last_points"]), row["last_points"]),
                Cell(words.duration(row["seconds_below_80"]), row["seconds_below_80"]),
            ]
        )
    return table("Health by subscriber", columns, cells, left_out(len(cells), count, "subscribers"))

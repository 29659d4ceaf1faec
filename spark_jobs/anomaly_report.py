"""What was unusual on one day, beside the same hours of the days before it.

`alarms`: a row is a run of hours in which a measure of one subscriber or topic was unusual, in one
direction. It carries its evidence, that of its worst hour:
  kind, name, measure        subscriber or topic; the measures are in MEASURES below
  direction                  up or down
  since, until, hours        the whole run, within that day
  at, value                  the worst hour, and what was measured in it
  usual, spread              median of that hour of the earlier days; how far they usually are from
                             it: 1.4826 x their median distance (the standard deviation, if it is
                             all noise), or what that is on average in all hours of the day, as a
                             share of the usual, when that is more: a few days tell too little
  deviation                  how many spreads the value is away from the usual; each measure has a
                             least spread, so that what never varied may vary a little
  days, days_as_far          earlier days there are; on how many of them it was at least half as far
                             off in that direction (weekends, and what happens every few days)
  severity                   critical from twice the deviation that makes an alarm, and for silence:
                             none at all, for which half the deviation is an alarm
Who had too little in that hour, or too few earlier days, raises no alarm, nor does a change that is
too small to matter: twenty times the usual latency is none while that is less than a second more.
Something that lasts for more days than it was otherwise becomes the usual.

`hours`: a row is a measure in an hour of that day, with the same evidence, alarming or not.

Not counted: hours that the export knows in part. "No events" is told from "no export" by the
gauges: an hour is whole when there are looks in its first and in its last quarter.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

if not __package__:  # spark-submit runs this file alone: let it find the others
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routemaster.domain.datasets import ATTEMPTS, GAUGES, PUBLISHES
from spark_jobs import tables
from spark_jobs.reading import Export
from spark_jobs.report import BadOption, Build
from spark_jobs.timeline import bucket_start, last_time, number_runs

DAYS, LEAST_DEVIATION = 14, 6.0
MIN_DAYS = 7  # a whole week: until then the first weekend is unusual
NORMAL = 1.4826  # the median distance of normal noise, times this, is its standard deviation


@dataclass(frozen=True, slots=True)
class Measure:
    meaning: str
    least_weight: int  # attempts or deliveries in an hour, below which it says nothing
    least_change: float  # a smaller one is no alarm, however unusual
    least_spread: float
    least_factor: float = 1.0  # times as much, or as little, as usual
    is_count: bool = False  # no row means 0, and less than usual is an alarm too


# Ten percent of the usual is the least spread, too.
MEASURES = {
    "events": Measure("delivered or published", 0, 100, 10, least_factor=3, is_count=True),
    "failure_rate": Measure("failed / all attempts, throttled ones are not failed", 20, 0.2, 0.02),
    "latency_seconds": Measure("mean from a batch's first event to its delivery", 10, 1, 0.1),
    "backlog": Measure("most events seen waiting", 0, 250, 50),
}
SERIES = ("kind", "name", "measure")


def alarms(
    attempts: DataFrame,
    publishes: DataFrame,
    gauges: DataFrame,
    day: date,
    *,
    days: int = DAYS,
    min_days: int = MIN_DAYS,
    least_deviation: float = LEAST_DEVIATION,
) -> DataFrame:
    measured = hours(attempts, publishes, gauges, day, days=days)
    alarming = measured.where(_is_alarming(min_days, least_deviation))
    an_hour = F.expr("interval 1 hour")
    runs = number_runs(
        alarming,
        [*SERIES, "direction"],
        ["hour"],
        lambda before: before("hour") + an_hour == F.col("hour"),
    )
    worst = F.struct("deviation", F.col("hour").alias("at"), "value", "usual", "spread", "days",
                     "days_as_far")  # fmt: skip
    rows = runs.groupBy(*SERIES, "direction", "run").agg(
        F.min("hour").alias("since"),
        (F.max("hour") + an_hour).alias("until"),
        F.count("*").alias("hours"),
        F.max(worst).alias("worst"),
    )
    is_critical = _is_silence() | (F.col("deviation") >= 2 * least_deviation)
    return rows.select("*", "worst.*").select(
        *SERIES,
        "direction",
        "since",
        "until",
        "hours",
        "at",
        "value",
        "usual",
        "spread",
        "deviation",
        "days",
        "days_as_far",
        F.when(is_critical, "critical").otherwise("warning").alias("severity"),
    )


def hours(
    attempts: DataFrame, publishes: DataFrame, gauges: DataFrame, day: date, *, days: int = DAYS
) -> DataFrame:
    begins = datetime.combine(day, time(), UTC)
    measured = (
        _of_attempts(_within(attempts, ATTEMPTS.time, begins, days))
        .unionByName(_of_publishes(_within(publishes, PUBLISHES.time, begins, days)))
        .unionByName(_of_gauges(_within(gauges, GAUGES.time, begins, days)))
        .where(F.col("weight") >= _of_measure("least_weight"))
    )
    known = _whole_hours(_within(gauges, GAUGES.time, begins, days))
    rows = _with_history(measured, known, begins)
    rows = rows.withColumn("usual", _median(F.col("history")))
    far = F.transform("history", lambda value: F.abs(value - F.col("usual")))
    rows = _with_spread(rows.withColumn("spread", NORMAL * _median(far)))
    change = F.col("value") - F.col("usual")
    least = F.greatest(F.col("spread"), _of_measure("least_spread"), 0.1 * F.abs(F.col("usual")))
    as_far = F.filter(
        "history", lambda value: (value - F.col("usual")) * F.signum(change) >= F.abs(change) / 2
    )
    return rows.where(F.col("value").isNotNull()).select(
        *SERIES,
        (F.lit(begins) + F.make_dt_interval(hours=F.col("hour_of_day"))).alias("hour"),
        "value",
        "usual",
        "spread",
        (F.abs(change) / least).alias("deviation"),
        F.when(change >= 0, "up").when(change < 0, "down").alias("direction"),
        F.size("history").alias("days"),
        F.when(change == 0, 0).otherwise(F.size(as_far)).alias("days_as_far"),
    )


def _is_alarming(min_days: int, least_deviation: float) -> Column:
    """One earlier day in ten may have been as far off: that was an incident, not a habit. Nothing
    at all is never many spreads below the usual, so half the deviation will do."""
    enough = F.when(_is_silence(), least_deviation / 2).otherwise(least_deviation)
    change = F.abs(F.col("value") - F.col("usual"))
    factor = _of_measure("least_factor")
    low, high = F.least("value", "usual"), F.greatest("value", "usual")
    return (
        (F.col("days") >= min_days)
        & (F.col("deviation") >= enough)
        & (change >= _of_measure("least_change"))
        & (high >= factor * low)
        & (F.col("days_as_far") <= F.floor(F.col("days") / 10))
        & ((F.col("direction") == "up") | (_of_measure("is_count") == 1))
    )


def _is_silence() -> Column:
    return (F.col("direction") == "down") & (F.col("value") == 0)


def _with_history(measured: DataFrame, known: DataFrame, begins: datetime) -> DataFrame:
    """A row is a series and an hour of the day: its `value`, and `history`, its values in that hour
    of the earlier days. Where no row means 0, that is from the series' first hour on."""
    is_count = _of_measure("is_count") == 1
    counted = measured.join(F.broadcast(known.select("hour")), ["hour"], how="left_semi")
    kept = measured.where(~is_count).unionByName(counted.where(is_count))
    today = F.col("hour") >= F.lit(begins)
    rows = kept.groupBy(*SERIES, F.hour("hour").alias("hour_of_day")).agg(
        F.max(F.when(today, F.col("value"))).alias("value"),
        F.collect_list(F.when(~today, F.col("value"))).alias("history"),
        F.min("hour").alias("first_here"),
    )
    series = Window.partitionBy(*SERIES).rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    by_hour = known.groupBy(F.hour("hour").alias("hour_of_day")).agg(
        F.collect_list(F.when(~today, F.col("hour"))).alias("known"),
        F.max(today).alias("known_today"),
    )
    rows = rows.withColumn("first", F.min("first_here").over(series)).join(
        F.broadcast(by_hour), ["hour_of_day"], how="left"
    )
    alive = F.size(F.filter("known", lambda hour: hour >= F.col("first")))
    zeros = F.array_repeat(F.lit(0.0), alive - F.size("history"))
    value = F.when(is_count & F.col("known_today"), F.coalesce("value", F.lit(0.0)))
    return rows.withColumn("value", F.coalesce(value, "value")).withColumn(
        "history", F.when(is_count, F.concat("history", zeros)).otherwise(F.col("history"))
    )


def _with_spread(rows: DataFrame) -> DataFrame:
    """A series has 24 rows at most."""
    series = Window.partitionBy(*SERIES).rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    share = F.when(F.col("usual") > 0, F.col("spread") / F.col("usual"))
    pooled = F.avg(share).over(series) * F.col("usual")
    return rows.withColumn("spread", F.greatest("spread", pooled))


def _whole_hours(gauges: DataFrame) -> DataFrame:
    looks = gauges.groupBy(bucket_start("taken_at", "hour").alias("hour"))
    minutes = looks.agg(
        F.min(F.minute("taken_at")).alias("first"), F.max(F.minute("taken_at")).alias("last")
    )
    return minutes.where((F.col("first") < 15) & (F.col("last") >= 45))


def _of_attempts(attempts: DataFrame) -> DataFrame:
    delivered = F.col("outcome") == "delivered"
    failed = F.col("outcome").isin("failed", "gone")
    rows = attempts.groupBy(
        F.col("subscriber").alias("name"), bucket_start("finished_at", "hour").alias("hour")
    ).agg(
        F.sum(F.when(delivered, F.col("events"))).cast("double").alias("events"),
        F.count("*").alias("attempts"),
        F.count_if(failed).alias("failed"),
        F.count_if(delivered).alias("delivered"),
        (F.avg(F.when(delivered, F.col("age_ms"))) / 1_000).alias("latency"),
    )
    rate = F.col("failed") / F.col("attempts")
    measures = F.array(
        _value("events", F.coalesce("events", F.lit(0.0)), F.col("attempts")),
        _value("failure_rate", rate, F.col("attempts")),
        _value("latency_seconds", F.col("latency"), F.col("delivered")),
    )
    return rows.select(F.lit("subscriber").alias("kind"), "name", "hour", F.inline(measures))


def _of_publishes(publishes: DataFrame) -> DataFrame:
    return (
        publishes.groupBy(
            F.col("topic").alias("name"), bucket_start("minute", "hour").alias("hour")
        )
        .agg(F.sum("events").alias("events"))
        .select(
            F.lit("topic").alias("kind"),
            "name",
            "hour",
            F.inline(F.array(_value("events", F.col("events").cast("double"), F.col("events")))),
        )
    )


def _of_gauges(gauges: DataFrame) -> DataFrame:
    looks = gauges.where((F.col("name") == "events.queued") & F.col("subscriber").isNotNull())
    most = looks.groupBy(
        F.col("subscriber").alias("name"), bucket_start("taken_at", "hour").alias("hour")
    ).agg(F.max("value").alias("value"), F.count("*").alias("weight"))
    return most.select(
        F.lit("subscriber").alias("kind"),
        "name",
        "hour",
        F.inline(F.array(_value("backlog", F.col("value"), F.col("weight")))),
    )


def _value(measure: str, value: Column, weight: Column) -> Column:
    return F.struct(F.lit(measure).alias("measure"), value.alias("value"), weight.alias("weight"))


def _of_measure(field: str) -> Column:
    """A field of each row's measure, as a number."""
    chosen: Column | None = None
    for name, measure in MEASURES.items():
        value = F.lit(float(getattr(measure, field)))
        fits = F.col("measure") == name
        chosen = F.when(fits, value) if chosen is None else chosen.when(fits, value)
    assert chosen is not None
    return chosen


def _median(values: Column) -> Column:
    """Of an array, null of an empty one. It holds a number for each day: sorting it is cheap."""
    in_order, count = F.array_sort(values), F.size(values)
    low = F.get(in_order, F.floor((count - 1) / 2).cast("int"))
    return (low + F.get(in_order, F.floor(count / 2).cast("int"))) / 2


def _within(df: DataFrame, column: str, begins: datetime, days: int) -> DataFrame:
    first, end = begins - timedelta(days=days), begins + timedelta(days=1)
    return df.where((F.col(column) >= F.lit(first)) & (F.col(column) < F.lit(end)))


def _evidence(
    export: Export, options: argparse.Namespace
) -> tuple[DataFrame, DataFrame, DataFrame]:
    first = options.day - timedelta(days=options.days)
    some = replace(export, first_day=first, last_day=options.day)
    return some.read(ATTEMPTS), some.read(PUBLISHES), some.read(GAUGES)


def _checked(export: Export, options: argparse.Namespace) -> argparse.Namespace:
    if options.days < 1 or options.min_days < 1 or options.least_deviation <= 0:
        raise BadOption("--days, --min-days and --least-deviation must be above 0")
    if options.day is None:
        newest = last_time((export.read(GAUGES), GAUGES), (export.read(PUBLISHES), PUBLISHES))
        options.day = (newest - timedelta(milliseconds=1)).date()
    return options


def _alarms(export: Export, options: argparse.Namespace) -> DataFrame:
    options = _checked(export, options)
    rows = alarms(
        *_evidence(export, options),
        options.day,
        days=options.days,
        min_days=options.min_days,
        least_deviation=options.least_deviation,
    )
    return rows.orderBy("severity", F.desc("deviation"), *SERIES)


def _hours(export: Export, options: argparse.Namespace) -> DataFrame:
    options = _checked(export, options)
    return hours(*_evidence(export, options), options.day, days=options.days).orderBy(
        *SERIES, "hour"
    )


TABLES: dict[str, Build] = {"alarms": _alarms, "hours": _hours}


def more_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--day", type=date.fromisoformat, metavar="YYYY-MM-DD", help="which day (the newest)")
    add("--days", type=int, default=DAYS, help=f"earlier days that are compared ({DAYS})")
    add("--min-days", type=int, default=MIN_DAYS, help=f"with fewer, no alarm ({MIN_DAYS})")
    add("--least-deviation", type=float, default=LEAST_DEVIATION,
        help=f"in spreads, of an alarm ({LEAST_DEVIATION:g})")  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    return tables.run("anomaly_report", __doc__ or "", TABLES, argv, more_options)


if __name__ == "__main__":
    sys.exit(main())

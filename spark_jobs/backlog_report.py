"""What waits for each subscriber, how fast it grows and drains, and what was given up.

`depth`: a row is a subscriber and an hour (or day) in which its queue was looked at.
  subscriber, start      the subscriber, and when the hour or day begins
  samples                how often its queue was looked at
  events_mean, events_max, events_last, batches_max, batches_last   what waited
  age_max_seconds, age_last_seconds        how long its oldest batch had waited
  seconds                from the last look of its row before (its first row: from its first look)
                         to its last look; the rates divide by this
  added, delivered, dropped                events in and out, by the counters
  growth_per_second      of the waiting events; negative while they drain
  added_per_second, drained_per_second     events in, and events delivered or dropped
Not counted: an hour without a look has no row, and what came and went in it counts in the next
row; before the first row, not at all. Peaks between two looks are not seen. What a queue held when
it was unsubscribed is neither delivered nor dropped.

`forecast`: a row is a subscriber whose queue was looked at in the last `lookback_seconds`.
  subscriber, at, events, batches, age_seconds     its last look
  samples, growth_per_second      the straight line through all looks (least squares)
  trend                  empty, draining, growing, or steady: less than one event in an hour
  seconds_to_drain, empty_at      when it is draining: where the line meets zero
Not counted: that a line is not what queues do. It is the answer to "if it goes on like this".

`memory`: one row, or none without a look at Redis' memory.
  at, used_bytes, high_bytes, max_bytes     the last look; above high_bytes batches are dropped
  samples, growth_bytes_per_second          as in forecast
  seconds_to_high, high_at                  0 seconds when it is passed; null when it never will be

`losses`: a row is a range of events of one lane, without a gap, given up for one reason.
  subscriber, lane, reason, first_seq, last_seq, events, batches
  oldest_created_at      when the oldest event of its first batch was accepted
  dropped_from, dropped_until     when the first and the last of its batches was given up
Not counted: what unsubscribing threw away, which is nobody's loss.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

if not __package__:  # spark-submit runs this file alone: let it find the others
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routemaster.domain.datasets import COUNTERS, DROPS, GAUGES
from spark_jobs import tables
from spark_jobs.counters import increases
from spark_jobs.reading import Export
from spark_jobs.report import Build
from spark_jobs.timeline import bucket_start, last_time, number_runs, seconds

MEASURES = {
    "events.queued": "events",
    "batches.queued": "batches",
    "batches.oldest_age_seconds": "age_seconds",
}
MEMORY = {
    "redis.used_bytes": "used_bytes",
    "redis.high_bytes": "high_bytes",
    "redis.max_bytes": "max_bytes",
}
FLOWS = {
    "events.added": "added",
    "events.delivered": "delivered",
    "events.dropped": "dropped",
}
STEADY_PER_SECOND = 1 / 3_600  # a line is never quite flat: less than one event in an hour is


def depth(gauges: DataFrame, counters: DataFrame, bucket: str = "hour") -> DataFrame:
    looks = _looks(gauges).withColumn("start", bucket_start("at", bucket))
    rows = looks.groupBy("subscriber", "start").agg(
        F.count("*").alias("samples"),
        F.min("at").alias("first_at"),
        F.max("at").alias("last_at"),
        F.min_by("events", "at").alias("events_first"),
        *(F.max_by(name, "at").alias(f"{name}_last") for name in MEASURES.values()),
        *(F.max(name).alias(f"{name}_max") for name in MEASURES.values()),
        F.avg("events").alias("events_mean"),
    )
    by_time = Window.partitionBy("subscriber").orderBy("start")
    since = F.coalesce(F.lag("last_at").over(by_time), F.col("first_at"))
    grown_from = F.coalesce(F.lag("events_last").over(by_time), F.col("events_first"))
    rows = rows.withColumn("seconds", seconds("last_at") - seconds(since)).withColumn(
        "grown", F.col("events_last") - grown_from
    )
    rows = _with_flows(rows, _flows(counters, bucket))
    drained = F.col("delivered") + F.col("dropped")
    return rows.select(
        "subscriber",
        "start",
        "samples",
        "events_mean",
        "events_max",
        "events_last",
        "batches_max",
        "batches_last",
        F.col("age_seconds_max").alias("age_max_seconds"),
        F.col("age_seconds_last").alias("age_last_seconds"),
        "seconds",
        "added",
        "delivered",
        "dropped",
        _per_second(F.col("grown")).alias("growth_per_second"),
        _per_second(F.col("added")).alias("added_per_second"),
        _per_second(drained).alias("drained_per_second"),
    )


def forecast(gauges: DataFrame, until: datetime, lookback_seconds: int = 3_600) -> DataFrame:
    looks = _recent(_looks(gauges), until, lookback_seconds)
    rows = looks.groupBy("subscriber").agg(
        F.max("at").alias("at"),
        *(F.max_by(name, "at").alias(name) for name in MEASURES.values()),
        F.count("*").alias("samples"),
        _slope("events", until).alias("growth_per_second"),
    )
    growth = F.col("growth_per_second")
    trend = (
        F.when(F.col("events") <= 0, "empty")
        .when(growth > STEADY_PER_SECOND, "growing")
        .when(growth < -STEADY_PER_SECOND, "draining")
        .otherwise("steady")
    )
    rows = rows.withColumn("trend", trend)
    to_drain = F.when(F.col("trend") == "draining", F.col("events") / -growth)
    return rows.select(
        "subscriber",
        "at",
        *MEASURES.values(),
        "samples",
        "growth_per_second",
        "trend",
        to_drain.alias("seconds_to_drain"),
        _later("at", to_drain).alias("empty_at"),
    )


def memory(gauges: DataFrame, until: datetime, lookback_seconds: int = 3_600) -> DataFrame:
    looks = _recent(_by_time(gauges, MEMORY, []), until, lookback_seconds)
    rows = looks.where(F.col("used_bytes").isNotNull()).agg(
        F.max("at").alias("at"),
        *(F.max_by(name, "at").alias(name) for name in MEMORY.values()),
        F.count("*").alias("samples"),
        _slope("used_bytes", until).alias("growth_bytes_per_second"),
    )
    free = F.col("high_bytes") - F.col("used_bytes")
    growth = F.col("growth_bytes_per_second")
    to_high = F.when(free <= 0, 0.0).when(growth > 0, free / growth)
    to_high = F.when(F.col("high_bytes") > 0, to_high)
    return rows.where(F.col("at").isNotNull()).select(
        "at",
        *MEMORY.values(),
        "samples",
        "growth_bytes_per_second",
        to_high.alias("seconds_to_high"),
        _later("at", to_high).alias("high_at"),
    )


def losses(drops: DataFrame) -> DataFrame:
    """Batches are given up oldest first, so a lane's drops in time are in sequence too. Ordering by
    time and not by number keeps apart what a lane lost before and after it began at 1 again.
    """
    hour = bucket_start("dropped_at", "hour")
    single = drops.select(
        "subscriber", "lane", "reason", "first_seq", "last_seq", "events",
        F.lit(1).cast("long").alias("batches"),
        F.col("created_at").alias("oldest_created_at"),
        F.col("dropped_at").alias("dropped_from"),
        F.col("dropped_at").alias("dropped_until"),
        hour.alias("hour"),
    )  # fmt: skip
    # In two steps, so that not one task has to sort all that one lane ever lost.
    within_hours = _joined(single, ["subscriber", "lane", "hour"])
    return _joined(within_hours, ["subscriber", "lane"]).select(
        "subscriber",
        "lane",
        "reason",
        "first_seq",
        "last_seq",
        "events",
        "batches",
        "oldest_created_at",
        "dropped_from",
        "dropped_until",
    )


def _joined(ranges: DataFrame, keys: list[str]) -> DataFrame:
    numbered = number_runs(
        ranges,
        keys,
        ["dropped_from", "first_seq"],
        lambda before: (
            (before("last_seq") + 1 == F.col("first_seq")) & (before("reason") == F.col("reason"))
        ),
    )
    return numbered.groupBy(*keys, "run").agg(
        F.first("reason").alias("reason"),
        F.min("first_seq").alias("first_seq"),
        F.max("last_seq").alias("last_seq"),
        F.sum("events").alias("events"),
        F.sum("batches").alias("batches"),
        F.min_by("oldest_created_at", "first_seq").alias("oldest_created_at"),
        F.min("dropped_from").alias("dropped_from"),
        F.max("dropped_until").alias("dropped_until"),
    )


def _looks(gauges: DataFrame) -> DataFrame:
    looks = _by_time(gauges, MEASURES, ["subscriber"])
    return looks.where(F.col("events").isNotNull() & F.col("subscriber").isNotNull())


def _by_time(gauges: DataFrame, names: dict[str, str], keys: list[str]) -> DataFrame:
    """A row is a look: the gauges `names` side by side. A duplicate look is no second one."""
    columns = [
        F.max(F.when(F.col("name") == name, F.col("value"))).alias(column)
        for name, column in names.items()
    ]
    wanted = gauges.where(F.col("name").isin(*names)).withColumnRenamed("taken_at", "at")
    return wanted.groupBy(*keys, "at").agg(*columns)


def _recent(looks: DataFrame, until: datetime, lookback_seconds: int) -> DataFrame:
    since = until - timedelta(seconds=lookback_seconds)
    return looks.where((F.col("at") >= F.lit(since)) & (F.col("at") < F.lit(until)))


def _slope(measure: str, until: datetime) -> Column:
    """Seconds count from `until`: with those since 1970 the squares would eat up the digits."""
    return F.regr_slope(measure, seconds("at") - F.lit(until.timestamp()))


def _flows(counters: DataFrame, bucket: str) -> DataFrame:
    grown = increases(
        counters.where(F.col("name").isin(*FLOWS)), ["subscriber", "name"], bucket
    ).groupBy("subscriber", "start")
    return grown.agg(
        *(
            F.sum(F.when(F.col("name") == name, F.col("increase"))).alias(column)
            for name, column in FLOWS.items()
        )
    )


def _with_flows(looked: DataFrame, flows: DataFrame) -> DataFrame:
    """What flowed in periods without a look counts in the next row, as its seconds do."""
    by_time = Window.partitionBy("subscriber").orderBy("start")
    so_far = by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    periods = looked.join(flows, ["subscriber", "start"], how="full").fillna(
        0, list(FLOWS.values())
    )
    sums = {f"{flow}_so_far": F.sum(flow).over(so_far) for flow in FLOWS.values()}
    rows = periods.withColumns(sums).where(F.col("samples").isNotNull())

    def since_row_before(flow: str) -> Column:
        here = F.col(f"{flow}_so_far")
        return here - F.coalesce(F.lag(here).over(by_time), here - F.col(flow))

    return rows.withColumns({flow: since_row_before(flow) for flow in FLOWS.values()})


def _per_second(amount: Column) -> Column:
    """Null when there is nothing to divide by: one look is no rate."""
    return F.when(F.col("seconds") > 0, amount / F.col("seconds"))


def _later(time: str, wait_seconds: Column) -> Column:
    """Null past the year 9999, which is what a nearly flat line comes to."""
    millis = F.unix_millis(F.col(time)) + F.round(wait_seconds * 1_000)
    return F.when(millis < 253_402_300_799_000, F.timestamp_millis(millis.cast("long")))


def _forecast_of(export: Export) -> DataFrame:
    gauges = export.read(GAUGES)
    return forecast(gauges, last_time((gauges, GAUGES)))


def _memory_of(export: Export) -> DataFrame:
    gauges = export.read(GAUGES)
    return memory(gauges, last_time((gauges, GAUGES)))


TABLES: dict[str, Build] = {
    "depth": lambda export, options: depth(
        export.read(GAUGES), export.read(COUNTERS), options.by
    ).orderBy("subscriber", "start"),
    "forecast": lambda export, _: _forecast_of(export).orderBy(F.desc("events"), "subscriber"),
    "memory": lambda export, _: _memory_of(export),
    "losses": lambda export, _: losses(export.read(DROPS)).orderBy("dropped_from", "subscriber"),
}


def main(argv: Sequence[str] | None = None) -> int:
    return tables.run("backlog_report", __doc__ or "", TABLES, argv)


if __name__ == "__main__":
    sys.exit(main())

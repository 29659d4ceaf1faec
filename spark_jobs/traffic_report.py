"""What is published, by whom, to how many; and what each subscriber costs the bus.

`topics`: a row is a topic of one publisher and an hour (or day) in which it published.
  topic, publisher, start     publisher is '' for a topic that nobody owns
  events, bytes, fanout      accepted; their size as JSON; and added to lanes: events x subscribers
  bytes_per_event, fanout_per_event
  share                       of the events of all topics in that period, 0 to 1
Not counted: what was refused, and duplicates by id. An hour without events has no row.

`costs`: a row is a subscriber and an hour (or day) in which something was sent, or waited, for it.
  subscriber, start
  attempts, failed_attempts   requests that ended in that period; failed: whatever was not delivered
  events                      delivered
  bytes                       sent, counted again in every attempt
  slot_seconds                how long these requests held a delivery slot: sum of took_ms
  failed_slot_seconds         of these, in attempts that failed
  redis_byte_seconds          what its queue held, and how long; see below
  attempts_share, slot_share, redis_share     of all subscribers in that period, 0 to 1
Not counted: the requests of pulling subscribers, publishing, and what Redis keeps about a batch
beside its events.

`redis_byte_seconds` is an estimate: the mean of an hour's looks at the queue, times an hour, times
the bytes of one event. These are bytes / events of the subscriber's attempts in the whole time that
was read, or of all subscribers' when it has none. An hour without a look counts nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # spark-submit runs this file alone: let it find the others
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routemaster.domain.datasets import ATTEMPTS, GAUGES, PUBLISHES
from spark_jobs import tables
from spark_jobs.report import Build
from spark_jobs.timeline import BUCKETS, bucket_start

ZEROS = (
    "attempts",
    "failed_attempts",
    "events",
    "bytes",
    "slot_seconds",
    "failed_slot_seconds",
    "redis_byte_seconds",
)


def topics(publishes: DataFrame, bucket: str = "hour") -> DataFrame:
    rows = publishes.groupBy("topic", "publisher", bucket_start("minute", bucket).alias("start"))
    sums = rows.agg(*(F.sum(name).alias(name) for name in ("events", "bytes", "fanout")))
    return sums.select(
        "topic",
        "publisher",
        "start",
        "events",
        "bytes",
        "fanout",
        _ratio(F.col("bytes"), F.col("events")).alias("bytes_per_event"),
        _ratio(F.col("fanout"), F.col("events")).alias("fanout_per_event"),
        _share("events").alias("share"),
    )


def costs(attempts: DataFrame, gauges: DataFrame, bucket: str = "hour") -> DataFrame:
    sent = _sent(attempts, bucket)
    waited = _waited(gauges, bucket)
    rows = (
        sent.join(waited, ["subscriber", "start"], how="full")
        .join(F.broadcast(_event_sizes(attempts)), ["subscriber"], how="left")
        .crossJoin(F.broadcast(_usual_size(attempts)))
    )
    size = F.coalesce("event_bytes", "usual_bytes", F.lit(0.0))
    rows = rows.withColumn("redis_byte_seconds", F.col("event_seconds") * size)
    return rows.fillna(0, list(ZEROS)).select(
        "subscriber",
        "start",
        *ZEROS,
        _share("attempts").alias("attempts_share"),
        _share("slot_seconds").alias("slot_share"),
        _share("redis_byte_seconds").alias("redis_share"),
    )


def _sent(attempts: DataFrame, bucket: str) -> DataFrame:
    delivered = F.col("outcome") == "delivered"
    rows = attempts.groupBy("subscriber", bucket_start("finished_at", bucket).alias("start"))
    return rows.agg(
        F.count("*").alias("attempts"),
        F.count_if(~delivered).alias("failed_attempts"),
        F.sum(F.when(delivered, F.col("events")).otherwise(0)).alias("events"),
        F.sum("bytes").alias("bytes"),
        (F.sum("took_ms") / 1_000).alias("slot_seconds"),
        (F.sum(F.when(delivered, 0).otherwise(F.col("took_ms"))) / 1_000).alias(
            "failed_slot_seconds"
        ),
    )


def _waited(gauges: DataFrame, bucket: str) -> DataFrame:
    """A row is a subscriber and period: events times the seconds that they waited."""
    looks = gauges.where((F.col("name") == "events.queued") & F.col("subscriber").isNotNull())
    single = looks.groupBy("subscriber", "taken_at").agg(F.max("value").alias("waiting"))
    hours = single.groupBy("subscriber", bucket_start("taken_at", "hour").alias("hour")).agg(
        (F.avg("waiting") * BUCKETS["hour"]).alias("event_seconds")
    )
    periods = hours.groupBy("subscriber", bucket_start("hour", bucket).alias("start"))
    return periods.agg(F.sum("event_seconds").alias("event_seconds"))


def _event_sizes(attempts: DataFrame) -> DataFrame:
    return attempts.groupBy("subscriber").agg(_mean_size().alias("event_bytes"))


def _usual_size(attempts: DataFrame) -> DataFrame:
    return attempts.agg(_mean_size().alias("usual_bytes"))


def _mean_size() -> Column:
    return _ratio(F.sum("bytes"), F.sum("events"))


def _share(name: str) -> Column:
    """The rows of one period are as many as there are subscribers, however loud one is."""
    period = Window.partitionBy("start").rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    return F.coalesce(_ratio(F.col(name), F.sum(name).over(period)), F.lit(0.0))


def _ratio(amount: Column, whole: Column) -> Column:
    return F.when(whole > 0, amount / whole)


TABLES: dict[str, Build] = {
    "costs": lambda export, options: costs(
        export.read(ATTEMPTS), export.read(GAUGES), options.by
    ).orderBy("start", F.desc("slot_seconds"), "subscriber"),
    "topics": lambda export, options: topics(export.read(PUBLISHES), options.by).orderBy(
        "start", F.desc("events"), "topic"
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    return tables.run("traffic_report", __doc__ or "", TABLES, argv)


if __name__ == "__main__":
    sys.exit(main())

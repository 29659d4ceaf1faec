"""How much the bus's counters grew, from cumulative snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.timeline import bucket_start

SERIES = ("name", "topic", "publisher", "subscriber", "outcome", "reason")


def increases(counters: DataFrame, keys: Sequence[str], bucket: str) -> DataFrame:
    """A row is how much counters grew (`increase`) by `keys` in an hour or day (`start`).

    Within an epoch a counter only grows, so duplicate, late and missing snapshots do no harm: a
    bucket ends at its highest value, and begins where the one before it ended (the first of an
    epoch: at its lowest). So what grew while no snapshot was taken counts when the next one was.
    Not counted: what an epoch had counted before its first snapshot.
    """
    series = [F.coalesce(F.col(name), F.lit("")).alias(name) for name in SERIES]
    ends = (
        counters.select("epoch", "value", *series, bucket_start("taken_at", bucket).alias("start"))
        .groupBy("epoch", *SERIES, "start")
        .agg(F.min("value").alias("low"), F.max("value").alias("high"))
    )
    by_time = Window.partitionBy("epoch", *SERIES).orderBy("start")
    before = by_time.rowsBetween(Window.unboundedPreceding, -1)
    begin = F.coalesce(F.max("high").over(before), F.col("low"))
    grown = ends.select(*SERIES, "start", (F.col("high") - begin).alias("increase"))
    return grown.groupBy(*keys, "start").agg(F.sum("increase").alias("increase"))

"""Health points over time."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.timeline import bucket_start

# A snapshot says nothing of what was longer ago: the bus, or the export, may have been away.
GAP_SECONDS = 300
THRESHOLDS = (80, 50)


def held(health: DataFrame) -> DataFrame:
    """Each snapshot once, with the seconds that it held: until the next, and at the end 0."""
    once = health.groupBy("subscriber", "taken_at").agg(
        F.min("health_points").alias("points"), F.max("state").alias("state")
    )
    following = Window.partitionBy("subscriber").orderBy("taken_at").rowsBetween(1, 1)
    seconds = (
        F.unix_millis(F.first("taken_at").over(following)) - F.unix_millis("taken_at")
    ) / 1000
    lasted = F.when(seconds.isNull(), 0.0).otherwise(F.least(seconds, F.lit(float(GAP_SECONDS))))
    return once.withColumn("seconds", lasted)


def by_period(health: DataFrame, by: str) -> DataFrame:
    """A snapshot belongs to the period in which it was taken."""
    weighted = F.col("points") * F.col("seconds")
    return (
        held(health)
        .groupBy("subscriber", bucket_start("taken_at", by).alias("period"))
        .agg(
            F.min("points").alias("least_points"),
            F.try_divide(F.sum(weighted), F.sum("seconds")).alias("weighted"),
            F.avg("points").alias("plain"),
            F.max_by("points", "taken_at").alias("last_points"),
        )
        .select(
            "subscriber",
            "period",
            "least_points",
            F.coalesce("weighted", "plain").alias("mean_points"),
            "last_points",
        )
    )


def by_subscriber(health: DataFrame) -> DataFrame:
    below = (
        F.sum(F.when(F.col("points") < limit, F.col("seconds")).otherwise(0.0)).alias(
            f"seconds_below_{limit}"
        )
        for limit in THRESHOLDS
    )
    return (
        held(health)
        .groupBy("subscriber")
        .agg(
            F.min("points").alias("least_points"),
            F.max_by("points", "taken_at").alias("last_points"),
            F.max_by("state", "taken_at").alias("last_state"),
            F.sum("seconds").alias("seconds_observed"),
            *below,
        )
    )

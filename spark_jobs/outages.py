"""When a subscriber took nothing, and what waited meanwhile. See spark_jobs/health_report.py."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

STEP_MS = 10_000
HOUR_MS = 3_600_000
LEAST_FAILURES = 3


def find_outages(attempts: DataFrame, gauges: DataFrame) -> DataFrame:
    long = runs(steps(attempts)).where(F.col("failures") >= LEAST_FAILURES)
    drained = long.join(waiting(long, attempts), on=["subscriber", "run"], how="left")
    whole = drained.join(queued(drained, gauges), on=["subscriber", "run"], how="left")
    last = attempts.agg(F.max("finished_at").alias("last_data_at"))
    until = F.coalesce("ended_at", "last_data_at")
    return whole.join(F.broadcast(last), how="cross").select(
        "subscriber",
        "started_at",
        "ended_at",
        seconds_between("started_at", until).alias("seconds"),
        "failures",
        "error",
        F.coalesce("events_waited", F.lit(0)).alias("events_waited"),
        "drained_at",
        seconds_between("ended_at", F.col("drained_at")).alias("recovery_seconds"),
        "most_queued",
    )


def steps(attempts: DataFrame) -> DataFrame:
    """Ten seconds of a subscriber in one row: however loud it is, windows see 8,640 rows a day."""
    fails = F.col("outcome").isin("failed", "gone")
    step = F.expr(f"unix_millis(finished_at) div {STEP_MS}").alias("step")
    by_error = attempts.groupBy("subscriber", step, F.when(fails, F.col("error")).alias("error"))
    counts = by_error.agg(
        F.count_if(F.col("outcome") == "delivered").alias("ok"),
        F.min(F.when(F.col("outcome") == "delivered", F.col("finished_at"))).alias("first_ok_at"),
        F.max(F.when(F.col("outcome") == "delivered", F.col("finished_at"))).alias("last_ok_at"),
        F.count_if(fails).alias("failures"),
        F.min(F.when(fails, F.col("started_at"))).alias("first_failure_at"),
    )
    errors = F.collect_list(F.when(F.col("failures") > 0, F.struct("error", "failures")))
    return counts.groupBy("subscriber", "step").agg(
        F.sum("ok").alias("ok"),
        F.min("first_ok_at").alias("first_ok_at"),
        F.max("last_ok_at").alias("last_ok_at"),
        F.sum("failures").alias("failures"),
        F.min("first_failure_at").alias("first_failure_at"),
        errors.alias("errors"),
    )


def runs(steps: DataFrame) -> DataFrame:
    """Steps without a delivery, one after another; the run's number is how many had one before."""
    in_order = Window.partitionBy("subscriber").orderBy("step")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    # What comes after is looked at backwards: for a frame that ends with the partition Spark goes
    # through all later rows for each row.
    backwards = Window.partitionBy("subscriber").orderBy(F.desc("step"))
    after = backwards.rowsBetween(Window.unboundedPreceding, -1)
    numbered = steps.withColumn(
        "run", F.coalesce(F.count_if(F.col("ok") > 0).over(before), F.lit(0))
    )
    with_end = numbered.withColumn("ended_at", F.min("first_ok_at").over(after))
    failing = with_end.where((F.col("ok") == 0) & (F.col("failures") > 0))
    return failing.groupBy("subscriber", "run").agg(
        F.min("first_failure_at").alias("started_at"),
        F.first("ended_at").alias("ended_at"),
        F.sum("failures").alias("failures"),
        most_frequent(F.flatten(F.collect_list("errors"))).alias("error"),
    )


def most_frequent(errors: Column) -> Column:
    """Of equals the first in the alphabet."""
    names = F.array_sort(F.array_distinct(F.transform(errors, lambda one: one["error"])))
    counted = F.transform(
        names, lambda name: F.struct(total(errors, name).alias("n"), name.alias("e"))
    )
    return F.aggregate(
        counted,
        F.struct(F.lit(0).cast("bigint").alias("n"), F.lit("").alias("e")),
        lambda best, one: F.when(one["n"] > best["n"], one).otherwise(best),
        lambda best: best["e"],
    )


def total(errors: Column, name: Column) -> Column:
    same = F.filter(errors, lambda one: one["error"] == name)
    return F.aggregate(same, F.lit(0).cast("bigint"), lambda sum, one: sum + one["failures"])


def waiting(outages: DataFrame, attempts: DataFrame) -> DataFrame:
    """Deliveries that an outage's end lies within. Joined by hour, so that a subscriber with many
    deliveries and many outages is not the product of both."""
    ends = outages.where(F.col("ended_at").isNotNull()).select(
        "subscriber", "run", "ended_at", hour("ended_at").alias("hour")
    )
    span = F.sequence(hour("created_at"), F.greatest(hour("created_at"), hour("finished_at")))
    delivered = attempts.where(F.col("outcome") == "delivered").select(
        "subscriber", "created_at", "finished_at", "events", F.explode(span).alias("hour")
    )
    waited = delivered.join(F.broadcast(ends), on=["subscriber", "hour"], how="inner").where(
        "created_at < ended_at AND finished_at >= ended_at"
    )
    return waited.groupBy("subscriber", "run").agg(
        F.sum("events").alias("events_waited"), F.max("finished_at").alias("drained_at")
    )


def queued(outages: DataFrame, gauges: DataFrame) -> DataFrame:
    seen = gauges.where("name = 'events.queued' AND subscriber IS NOT NULL").select(
        "subscriber", "taken_at", "value"
    )
    spans = outages.select("subscriber", "run", "started_at", "ended_at", "drained_at")
    within = seen.join(F.broadcast(spans), on="subscriber", how="inner").where(
        (F.col("taken_at") >= F.col("started_at"))
        # One that is not over yet has no end.
        & F.coalesce(F.col("taken_at") <= F.coalesce("drained_at", "ended_at"), F.lit(True))
    )
    return within.groupBy("subscriber", "run").agg(F.max("value").alias("most_queued"))


def hour(time: str) -> Column:
    return F.expr(f"unix_millis({time}) div {HOUR_MS}")


def seconds_between(start: str, end: Column) -> Column:
    return (F.unix_millis(end) - F.unix_millis(F.col(start))) / 1000

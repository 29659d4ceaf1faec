"""Subscribers from the worst to the best, with the reasons. See spark_jobs/health_report.py."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.outages import HOUR_MS, STEP_MS, steps
from spark_jobs.trajectory import by_subscriber

FLAPPING = 5
DEAD_HOURS = 24
# What is taken from 100, at most: when all attempts fail, when it was out all the time, when its
# health was low all the time, when it flaps.
FAILING, OUT, LOW, FLAPS = 40, 30, 20, 10


def rank(attempts: DataFrame, health: DataFrame, outages: DataFrame) -> DataFrame:
    ticks = steps(attempts)
    known = (
        tallies(ticks)
        .join(turns(ticks), on="subscriber", how="left")
        .join(by_subscriber(health), on="subscriber", how="full")
        .join(outage_totals(outages), on="subscriber", how="left")
    )
    ends = attempts.agg(F.max("finished_at").alias("last"), F.min("finished_at").alias("first"))
    judged = judge(known.join(F.broadcast(ends), how="cross"))
    worst_first = Window.orderBy("score", "subscriber")
    return judged.select(
        F.row_number().over(worst_first).alias("rank"),
        "subscriber",
        "score",
        "reasons",
        *(F.coalesce(name, F.lit(0)).alias(name) for name in ("attempts", "failed")),
        "outages",
        "out_seconds",
        "longest_outage_seconds",
        "events_waited",
        "most_runs_an_hour",
        "is_flapping",
        "is_dead",
        "last_delivered_at",
        "last_state",
        "least_points",
        "last_points",
        "seconds_observed",
        "seconds_below_80",
        "seconds_below_50",
    )


def tallies(ticks: DataFrame) -> DataFrame:
    return ticks.groupBy("subscriber").agg(
        F.sum(F.col("ok") + F.col("failures")).alias("attempts"),
        F.sum("failures").alias("failed"),
        F.max("last_ok_at").alias("last_delivered_at"),
    )


def turns(ticks: DataFrame) -> DataFrame:
    """How often deliveries turned to failures within an hour. Steps with both count as delivering,
    and those with neither as what was before."""
    spoken = ticks.where((F.col("ok") > 0) | (F.col("failures") > 0))
    before = Window.partitionBy("subscriber").orderBy("step").rowsBetween(-1, -1)
    turned = (F.col("ok") == 0) & (F.first("ok").over(before) > 0)
    hours = spoken.withColumn("turned", turned).groupBy(
        "subscriber", F.expr(f"step div {HOUR_MS // STEP_MS}").alias("hour")
    )
    return (
        hours.agg(F.count_if("turned").alias("runs"))
        .groupBy("subscriber")
        .agg(F.max("runs").alias("most_runs_an_hour"))
    )


def outage_totals(outages: DataFrame) -> DataFrame:
    lasting = F.when(F.col("ended_at").isNull(), F.col("seconds"))
    return outages.groupBy("subscriber").agg(
        F.count(F.lit(1)).alias("outages"),
        F.sum("seconds").alias("out_seconds"),
        F.max("seconds").alias("longest_outage_seconds"),
        F.sum("events_waited").alias("events_waited"),
        F.max(lasting).alias("out_since_seconds"),
    )


def judge(known: DataFrame) -> DataFrame:
    counts = ("outages", "events_waited", "most_runs_an_hour")
    times = ("out_seconds", "longest_outage_seconds", "seconds_observed")
    below = ("seconds_below_80", "seconds_below_50")
    filled = known.fillna(0, [*counts, *times, *below])
    long_out = F.coalesce(F.col("out_since_seconds") >= DEAD_HOURS * 3600, F.lit(False))
    is_disabled = F.coalesce(F.col("last_state") == "disabled", F.lit(False))
    return (
        filled.withColumn("is_dead", long_out | is_disabled)
        .withColumn("is_flapping", F.col("most_runs_an_hour") >= FLAPPING)
        .withColumn("score", score())
        .withColumn("reasons", reasons())
    )


def score() -> Column:
    whole_seconds = (F.unix_millis("last") - F.unix_millis("first")) / 1000
    lost = (
        FAILING * share(F.col("failed"), F.col("attempts"))
        + OUT * share(F.col("out_seconds"), whole_seconds)
        + LOW * share(F.col("seconds_below_50"), F.col("seconds_observed"))
        + F.when(F.col("is_flapping"), FLAPS).otherwise(0)
    )
    return F.when(F.col("is_dead"), 0.0).otherwise(F.round(F.greatest(F.lit(0.0), 100 - lost), 1))


def share(part: Column, whole: Column) -> Column:
    """0 to 1; 0 of nothing."""
    ratio = F.try_divide(part.cast("double"), whole.cast("double"))
    return F.least(F.lit(1.0), F.coalesce(ratio, F.lit(0.0)))


def reasons() -> Column:
    """Empty for a subscriber that nothing is wrong with."""
    percent = F.round(100 * F.col("failed") / F.col("attempts"), 1)
    minutes = F.round(F.col("out_seconds") / 60, 1)
    low = F.round(F.col("seconds_below_50") / 60, 1)
    last = F.coalesce(
        F.date_format("last_delivered_at", "yyyy-MM-dd HH:mm"), F.lit("the beginning")
    )
    found = F.array(
        said(F.col("last_state") == "disabled", "it is disabled: it answered 410"),
        said(F.col("is_dead"), "nothing delivered since %s", last),
        said(F.col("failed") > 0, "%s %% of %s attempts failed", percent, F.col("attempts")),
        said(
            F.col("outages") > 0,
            "%s outages, %s minutes in all; %s events waited",
            F.col("outages"), minutes, F.col("events_waited"),
        ),
        said(F.col("is_flapping"), "it turned from delivering to failing %s times in one hour",
             F.col("most_runs_an_hour")),
        said(F.col("seconds_below_50") > 0, "below 50 health points for %s minutes", low),
    )  # fmt: skip
    return F.array_compact(found)


def said(condition: Column, text: str, *values: Column) -> Column:
    return F.when(condition, F.format_string(text, *(value.cast("string") for value in values)))

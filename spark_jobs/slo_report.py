"""Whether events arrived in time: how much of each subscriber's error budget is left.

An objective says that `target_percent` of the events must be acknowledged within `within_seconds`
of being accepted (`spark_jobs/objectives.py`). What may miss that is the budget. Events count when
their fate is known:
  good       delivered in time, counted when they were
  late       delivered, but too late; a batch is as late as its oldest event
  dropped    given up, counted when they were
  overdue    in a batch that was tried when it was too late already, and neither delivered nor given
             up in what was read; counted at its last try
Not counted: events that wait untried (behind an overdue batch of their lane, for a paused, a
disabled or a pulling subscriber), and those that unsubscribing threw away.

`attainment`: a row is a subscriber and a window that ends at `until` and in which events counted.
  subscriber, window         1h, 6h or whole: all that was read
  until, target_percent, within_seconds
  events, good, late, dropped, overdue
  attainment_percent, met    good of all; whether that is the target
  budget_events              how many may miss the objective
  budget_left                the share of these that is left: 1 is all of it, below 0 is overdrawn
  burn_rate                  how fast it is used: 1 is just as fast as is allowed
  worst                      1 for who overdrew its budget by most events in that window

`spending`: a row is a subscriber and an hour (or day) in which events counted.
  subscriber, start, events, good, bad
  budget_spent               the share of the whole time's budget that was used in this period
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

if not __package__:  # spark-submit runs this file alone: let it find the others
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routemaster.domain.datasets import ATTEMPTS, DROPS
from spark_jobs import tables
from spark_jobs.objectives import BadObjectives, Objectives, load
from spark_jobs.reading import Export
from spark_jobs.report import BadOption, Build, by_option
from spark_jobs.timeline import bucket_start, last_time

WINDOWS = {"1h": timedelta(hours=1), "6h": timedelta(hours=6), "whole": None}
FATES = ("good", "late", "dropped", "overdue")


def attainment(
    attempts: DataFrame, drops: DataFrame, objectives: Objectives, until: datetime
) -> DataFrame:
    known = fates(attempts, drops, objectives).where(F.col("time") < F.lit(until))
    sums = known.groupBy("subscriber").agg(
        *(
            F.sum(F.when(_within(length, until), F.col(fate))).alias(f"{window}_{fate}")
            for window, length in WINDOWS.items()
            for fate in FATES
        )
    )
    rows = (
        sums.select("subscriber", F.inline(F.array(*(_window(name) for name in WINDOWS))))
        .withColumn("events", sum((F.col(fate) for fate in FATES), F.lit(0)))
        .where(F.col("events") > 0)
        .withColumn("target_percent", objectives.column("target_percent"))
        .withColumn("within_seconds", objectives.column("within_seconds"))
        .withColumn("budget_events", F.col("events") * _may_miss())
        .withColumn("bad", F.col("events") - F.col("good"))
        .withColumn("attainment_percent", 100 * F.col("good") / F.col("events"))
    )
    overdrawn = F.col("bad") - F.col("budget_events")
    by_harm = Window.partitionBy("window").orderBy(overdrawn.desc(), "subscriber")
    burnt = F.col("bad") / F.col("budget_events")
    return rows.select(
        "subscriber",
        "window",
        F.lit(until).alias("until"),
        "target_percent",
        "within_seconds",
        "events",
        *FATES,
        "attainment_percent",
        (F.col("attainment_percent") >= F.col("target_percent")).alias("met"),
        "budget_events",
        (1 - burnt).alias("budget_left"),
        burnt.alias("burn_rate"),
        F.row_number().over(by_harm).alias("worst"),
    )


def spending(
    attempts: DataFrame, drops: DataFrame, objectives: Objectives, bucket: str = "hour"
) -> DataFrame:
    known = fates(attempts, drops, objectives)
    rows = known.groupBy("subscriber", bucket_start("time", bucket).alias("start")).agg(
        F.sum(sum((F.col(fate) for fate in FATES), F.lit(0))).alias("events"),
        F.sum("good").alias("good"),
    )
    whole = Window.partitionBy("subscriber").rowsBetween(
        Window.unboundedPreceding, Window.unboundedFollowing
    )
    bad = F.col("events") - F.col("good")
    rows = rows.withColumn("target_percent", objectives.column("target_percent"))
    return rows.where(F.col("events") > 0).select(
        "subscriber",
        "start",
        "events",
        "good",
        bad.alias("bad"),
        (bad / (F.sum("events").over(whole) * _may_miss())).alias("budget_spent"),
    )


def fates(attempts: DataFrame, drops: DataFrame, objectives: Objectives) -> DataFrame:
    """A row is (part of) a batch whose fate is known: at what time, and events in one column of
    FATES, 0 in the others."""
    within_ms = objectives.column("within_seconds") * 1_000
    tries = attempts.withColumn("in_time", F.col("age_ms") <= within_ms)
    delivered = tries.where(F.col("outcome") == "delivered")
    return (
        delivered.select("subscriber", *_fate("finished_at", good="in_time", late="not in_time"))
        .unionByName(drops.select("subscriber", *_fate("dropped_at", dropped="true")))
        .unionByName(
            _overdue(tries, drops).select("subscriber", *_fate("finished_at", overdue="true"))
        )
    )


def _overdue(tries: DataFrame, drops: DataFrame) -> DataFrame:
    """A delivery after a late try is late itself, so only what is late is looked through."""
    late = tries.where(~F.col("in_time"))
    batch = ["subscriber", "batch"]
    open_batches = late.where(F.col("outcome") != "delivered").groupBy(*batch)
    return (
        open_batches.agg(
            F.max_by("events", F.struct("finished_at", "events")).alias("events"),
            F.max("finished_at").alias("finished_at"),
        )
        .join(late.where(F.col("outcome") == "delivered").select(*batch), batch, how="left_anti")
        .join(drops.select(*batch), batch, how="left_anti")
    )


def _fate(time: str, **conditions: str) -> list[Column]:
    events = [
        F.when(F.expr(conditions.get(fate, "false")), F.col("events"))
        .otherwise(0)
        .cast("long")
        .alias(fate)
        for fate in FATES
    ]
    return [F.col(time).alias("time"), *events]


def _within(length: timedelta | None, until: datetime) -> Column:
    return F.lit(True) if length is None else F.col("time") >= F.lit(until - length)


def _window(name: str) -> Column:
    sums = (F.coalesce(F.col(f"{name}_{fate}"), F.lit(0)).alias(fate) for fate in FATES)
    return F.struct(F.lit(name).alias("window"), *sums)


def _may_miss() -> Column:
    return 1 - F.col("target_percent") / 100


def objectives_of(options: argparse.Namespace) -> Objectives:
    path = getattr(options, "objectives", "")
    try:
        return load(path) if path else Objectives()
    except BadObjectives as error:
        raise BadOption(f"--objectives {error}") from None


def _attainment(export: Export, options: argparse.Namespace) -> DataFrame:
    objectives = objectives_of(options)
    attempts, drops = export.read(ATTEMPTS), export.read(DROPS)
    until = last_time((attempts, ATTEMPTS), (drops, DROPS))
    return attainment(attempts, drops, objectives, until).orderBy("window", "worst")


def _spending(export: Export, options: argparse.Namespace) -> DataFrame:
    rows = spending(export.read(ATTEMPTS), export.read(DROPS), objectives_of(options), options.by)
    return rows.orderBy("subscriber", "start")


TABLES: dict[str, Build] = {"attainment": _attainment, "spending": _spending}


def more_options(parser: argparse.ArgumentParser) -> None:
    by_option(parser)
    objectives_option(parser)


def objectives_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--objectives",
        default="",
        metavar="FILE",
        help="a TOML file such as spark_jobs/slo.toml (99.9 %% within 5 s for all)",
    )


def main(argv: Sequence[str] | None = None) -> int:
    return tables.run("slo_report", __doc__ or "", TABLES, argv, more_options)


if __name__ == "__main__":
    sys.exit(main())

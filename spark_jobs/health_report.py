"""Which subscribers are healthy, which are not, since when, and why. Three tables (`--table`):

ranking: one row per subscriber, the worst first.
  score                 100 less what `score` below takes away; 0 when it is dead
  reasons               what took it away, in words
  attempts, failed      failed includes 410; throttled is neither
  outages, out_seconds  how many, and how long in all; the longest in longest_outage_seconds
  events_waited         events that waited for the end of one of them
  most_runs_an_hour     how often it turned from delivering to failing, in its worst hour
  is_flapping           that was `FLAPPING` times or more
  is_dead               disabled (410), or out for `DEAD_HOURS` or more and not back yet
  last_delivered_at     its last 2xx; null when there was none
  least_points, last_points, seconds_observed, seconds_below_80, seconds_below_50
                        health points; each snapshot holds until the next, `GAP_SECONDS` at most

outages: one row per outage: from its first failed attempt to the next 2xx, with `LEAST_FAILURES`
attempts or more in between and nothing delivered. Time is looked at in steps of 10 seconds: one
with a delivery in it is none of an outage's.
  started_at, ended_at, seconds   ended_at is that of the 2xx; null while it lasts, and then the
                                  seconds are those until the newest attempt
  failures, error                 failed attempts, and their most frequent error class
  events_waited                   in batches that were begun before its end and delivered at it
                                  or later
  drained_at, recovery_seconds    when the last of those was delivered, counted from ended_at
  most_queued                     most events that a gauge saw queued, from its start until drained

trajectory: one row per subscriber and period: least, mean (over time) and last health points.

Not counted: what was accepted before an outage's end and is not delivered yet (most_queued says how
much that was), a subscriber that nothing was tried for and that no snapshot names, and time in
which no snapshot was taken. "Now" is the newest row, never the clock.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

if not __package__:  # spark-submit runs this file alone: let it find the others
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.sql import DataFrame

from routemaster.domain.datasets import ATTEMPTS, GAUGES, HEALTH
from spark_jobs import report as reports
from spark_jobs import tables
from spark_jobs.outages import find_outages
from spark_jobs.ranking import rank
from spark_jobs.reading import Export
from spark_jobs.trajectory import by_period


def report(attempts: DataFrame, health: DataFrame, gauges: DataFrame) -> DataFrame:
    return rank(attempts, health, find_outages(attempts, gauges))


def ranking(export: Export, options: argparse.Namespace) -> DataFrame:
    attempts, health, gauges = (export.read(each) for each in (ATTEMPTS, HEALTH, GAUGES))
    return report(attempts, health, gauges).orderBy("rank")


def outages(export: Export, options: argparse.Namespace) -> DataFrame:
    found = find_outages(export.read(ATTEMPTS), export.read(GAUGES))
    return found.orderBy("subscriber", "started_at")


def trajectory(export: Export, options: argparse.Namespace) -> DataFrame:
    return by_period(export.read(HEALTH), options.by).orderBy("subscriber", "period")


TABLES: dict[str, reports.Build] = {
    "ranking": ranking,
    "outages": outages,
    "trajectory": trajectory,
}


def main(argv: Sequence[str] | None = None) -> int:
    return tables.run("health_report", __doc__ or "", TABLES, argv)


if __name__ == "__main__":
    sys.exit(main())

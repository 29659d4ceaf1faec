"""Rows in time: buckets, seconds, and runs of rows that belong together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from routemaster.domain.datasets import Dataset

BUCKETS = {"hour": 3_600, "day": 86_400}  # name -> seconds


def bucket_start(time: str, bucket: str) -> Column:
    """The beginning of the UTC hour or day that `time` is in."""
    if bucket not in BUCKETS:
        raise ValueError(f"bucket must be one of {', '.join(BUCKETS)}, not {bucket!r}")
    return F.date_trunc(bucket, F.col(time))


def last_time(*frames: tuple[DataFrame, Dataset]) -> datetime:
    """Just after the newest row: "now" for a report, which never asks the clock."""
    last_ms = [newest_ms(df, dataset) for df, dataset in frames]
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=max(last_ms) + 1)


def newest_ms(df: DataFrame, dataset: Dataset) -> int:
    row = df.agg(F.unix_millis(F.max(dataset.time)).alias("ms")).first()
    return row.ms if row is not None and row.ms is not None else 0


def seconds(time: str | Column) -> Column:
    """Seconds since 1970, with the milliseconds."""
    return F.unix_millis(F.col(time) if isinstance(time, str) else time) / 1_000


def number_runs(
    df: DataFrame,
    keys: Sequence[str],
    order: Sequence[str],
    goes_on: Callable[[Callable[[str], Column]], Column],
) -> DataFrame:
    """Adds `run`, a number that neighbours in `order` share where one goes on from the other.

    `goes_on(before)` says whether a row goes on from the one before it, whose columns are
    `before(name)`; null is no. One task sorts all rows of one key: where these can be very many,
    number within hours first, as `backlog_report.losses` does.
    """
    in_order = Window.partitionBy(*keys).orderBy(*order)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    follows = goes_on(lambda name: F.lag(name).over(in_order))
    begins = F.when(follows, 0).otherwise(1)
    numbered = df.withColumn("_begins", begins).withColumn("run", F.sum("_begins").over(so_far))
    return numbered.drop("_begins")

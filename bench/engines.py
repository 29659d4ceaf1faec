"""The delivery report's numbers by other engines, from the same files."""

from __future__ import annotations

import os
from collections.abc import Callable

import duckdb

THREADS = len(os.sched_getaffinity(0))
# Polars counts the machine's cores when it is imported.
os.environ.setdefault("POLARS_MAX_THREADS", str(THREADS))

import polars  # noqa: E402

Numbers = tuple[int, int, int]  # rows, attempts, events delivered
RANKS = (0.50, 0.95, 0.99)
SAMPLES = {"took": "took_ms", "delivered": "age_ms"}


def duckdb_delivery(root: str, percentiles: bool) -> Callable[[], Numbers]:
    ranks = ", ".join(
        f"quantile_disc({column}, {list(RANKS)})"
        f"{' filter (outcome = $$delivered$$)' if name == 'delivered' else ''} as {name}"
        for name, column in SAMPLES.items()
    )
    query = f"""
        create or replace temp table report as
        select subscriber, date_trunc('hour', finished_at) as period,
          count(*) as attempts,
          count(*) filter (outcome = 'delivered') as batches,
          count(*) filter (outcome = 'failed') as failed,
          coalesce(sum(events) filter (outcome = 'delivered'), 0) as events,
          count(*) filter (error = 'http_503') as http_503
          {"," if percentiles else ""} {ranks if percentiles else ""}
        from read_parquet('{root}/attempts/*/*.parquet') group by all"""

    def run() -> Numbers:
        with duckdb.connect() as connection:
            connection.execute(f"set threads = {THREADS}; set timezone = 'UTC'")
            connection.execute(query)
            found = connection.execute("select count(*), sum(attempts), sum(events) from report")
            row = found.fetchone()
        assert row is not None
        return int(row[0]), int(row[1]), int(row[2])

    return run


def polars_delivery(root: str, percentiles: bool) -> Callable[[], Numbers]:
    is_delivered = polars.col("outcome") == "delivered"
    columns = [
        polars.len().alias("attempts"),
        is_delivered.sum().alias("batches"),
        (polars.col("outcome") == "failed").sum().alias("failed"),
        polars.col("events").filter(is_delivered).sum().alias("delivered_events"),
        (polars.col("error") == "http_503").sum().alias("http_503"),
    ]
    if percentiles:
        for name, column in SAMPLES.items():
            value = polars.col(column)
            value = value.filter(is_delivered) if name == "delivered" else value
            columns += [value.quantile(rank, "lower").alias(f"{name}_{rank}") for rank in RANKS]
    report = (
        polars.scan_parquet(f"{root}/attempts/*/*.parquet", hive_partitioning=False)
        .group_by("subscriber", polars.col("finished_at").dt.truncate("1h").alias("period"))
        .agg(columns)
    )

    def run() -> Numbers:
        rows = report.collect(engine="streaming")
        return rows.height, int(rows["attempts"].sum()), int(rows["delivered_events"].sum())

    return run

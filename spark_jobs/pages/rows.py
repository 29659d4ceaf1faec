"""From Spark to plain rows, never more than a page can show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from spark_jobs.pages.days import Days

Row = dict[str, Any]
MOST_ROWS = 20_000


def collect(df: DataFrame, most: int = MOST_ROWS) -> list[Row]:
    """Times come as UTC's. On their own they would come as the time where Python thinks it is."""
    times = [field.name for field in df.schema if isinstance(field.dataType, TimestampType)]
    plain = df.limit(most).withColumns({name: F.unix_millis(name) for name in times})
    return [_with_times(row.asDict(), times) for row in plain.collect()]


def _with_times(row: Row, times: list[str]) -> Row:
    for name in times:
        if row[name] is not None:
            row[name] = datetime.fromtimestamp(row[name] / 1000, UTC)
    return row


def one(df: DataFrame) -> Row:
    rows = collect(df, 1)
    return rows[0] if rows else {}


def ms(column: str) -> Column:
    """A time that does not depend on where Python thinks it is."""
    return F.unix_millis(F.col(column))


def by_period(rows: Iterable[Mapping[str, Any]], days: Days, *names: str) -> list[list[Any]]:
    """For each of `names` its value in each period of `days`, None where there is none. `rows`
    have `start_ms`."""
    known = {row["start_ms"]: row for row in rows}
    return [[known[at][name] if at in known else None for at in days.starts_ms] for name in names]


def of_each(rows: Iterable[Row], key: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def only(df: DataFrame, key: str, names: Sequence[str]) -> DataFrame:
    return df.where(F.col(key).isin(list(names)))

"""What the reports are compared with: plain Python over plain rows, and how rows are compared.

A session costs a second for each question, so random cases are put into one DataFrame: each case
is a subscriber of its own, and one question asks about all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame

Row = dict[str, Any]
T0 = datetime(2026, 3, 2, tzinfo=UTC)
# Whoever uses it gets fixtures that last: `frame` only makes DataFrames.
few_questions = settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],  # a smaller case of a hundred is not worth minutes of questions
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)
# A few hours of two days, so that there are neighbours, gaps of hours, and equal times.
TIMES = st.one_of(st.integers(0, 5 * 3_600), st.integers(86_000, 90_000)).map(lambda s: at(s))
LENGTHS = {"hour": timedelta(hours=1), "day": timedelta(days=1)}


def cases(case: st.SearchStrategy[Any], count: int = 50) -> st.SearchStrategy[list[Any]]:
    return st.lists(case, min_size=count, max_size=count)


def all_of(make: Callable[[Any, str], list[Row]], drawn: Iterable[Any]) -> list[Row]:
    return [row for i, case in enumerate(drawn) for row in make(case, f"s{i:02}")]


def at(seconds: float) -> datetime:
    return T0 + timedelta(milliseconds=round(seconds * 1000))


def start_of(time: datetime, bucket: str = "hour") -> datetime:
    return T0 + (time - T0) // LENGTHS[bucket] * LENGTHS[bucket]


def rows_of(df: DataFrame) -> list[Row]:
    rows: list[Row] = df.toArrow().to_pylist()
    return rows


def by(rows: Iterable[Row], *keys: str) -> dict[Any, list[Row]]:
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[key] for key in keys)].append(row)
    return dict(found)


def assert_same(found: Sequence[Row], expected: Sequence[Row], *keys: str) -> None:
    """Every row and column, numbers to nine digits; the first difference is shown."""
    found_rows, expected_rows = by(found, *keys), by(expected, *keys)
    assert found_rows.keys() == expected_rows.keys()
    for key, rows in expected_rows.items():
        assert len(rows) == len(found_rows[key]) == 1, key
        for name, value in rows[0].items():
            close = pytest.approx(value, rel=1e-9, abs=1e-6) if type(value) is float else value
            assert found_rows[key][0][name] == close, (key, name)
        assert found_rows[key][0].keys() == rows[0].keys()


def increases(counters: Iterable[Row], bucket: str) -> dict[Any, int]:
    """(name, subscriber, start) -> increase, by walking through each epoch's snapshots."""
    grown: dict[Any, int] = defaultdict(int)
    tags = ("epoch", "name", "topic", "publisher", "subscriber", "outcome", "reason")
    for series in by(counters, *tags).values():
        highest = None
        for row in sorted(series, key=lambda row: (row["taken_at"], row["value"])):
            key = (row["name"], row["subscriber"], start_of(row["taken_at"], bucket))
            grown[key] += max(0, row["value"] - highest) if highest is not None else 0
            highest = max(row["value"], highest or 0)
    return grown

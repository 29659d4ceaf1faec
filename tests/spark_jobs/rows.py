"""Rows of the export: a plain one of each dataset, changed where a test says so."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from routemaster.domain.datasets import METADATA_KEY, Dataset
from routemaster.export.arrow import schema_of

Row = dict[str, Any]
START = datetime(2026, 3, 2, tzinfo=UTC)

BASE: dict[str, Row] = {
    "counters": {
        "taken_at": START, "epoch": "e1", "name": "events.delivered", "topic": None,
        "publisher": None, "subscriber": "mailer", "outcome": None, "reason": None, "value": 0,
    },
    "gauges": {
        "taken_at": START, "name": "events.queued", "subscriber": "mailer", "queue": None,
        "state": None, "value": 0.0,
    },
    "health": {
        "taken_at": START, "subscriber": "mailer", "state": "active", "health_points": 100,
        "consecutive_failures": 0,
    },
    "attempts": {
        "id": "1-0", "subscriber": "mailer", "lane": "0", "batch": "b1", "attempt": 1, "events": 10,
        "bytes": 1000, "first_seq": 1, "created_at": START, "started_at": START,
        "finished_at": START, "took_ms": 0, "age_ms": 0, "outcome": "delivered",
        "http_status": 200, "error": "", "worker": "w1",
    },
    "drops": {
        "id": "1-0", "subscriber": "mailer", "lane": "0", "batch": "b1", "events": 10,
        "first_seq": 1, "last_seq": 10, "created_at": START, "dropped_at": START,
        "reason": "memory",
    },
    "publishes": {
        "minute": START, "topic": "orders", "publisher": "shop", "events": 10, "bytes": 1000,
        "fanout": 20,
    },
}  # fmt: skip


def at(text: str) -> datetime:
    """`03:10`, `03:10:05.250` or `2 03:10`: a time on the first day, or on a day counted from 0."""
    days, _, clock = text.rpartition(" ")
    hours, minutes, *seconds = clock.split(":")
    return START + timedelta(
        days=int(days or 0), hours=int(hours), minutes=int(minutes),
        milliseconds=round(1000 * float(seconds[0])) if seconds else 0,
    )  # fmt: skip


def row(dataset: Dataset, **changes: Any) -> Row:
    base = BASE[dataset.name]
    assert not changes.keys() - base.keys(), f"no such column: {changes.keys() - base.keys()}"
    return {**base, **changes}


def attempt_row(dataset: Dataset, created: datetime, wait_ms: int, took_ms: int, **changes) -> Row:
    """An attempt whose times belong together."""
    started = created + timedelta(milliseconds=wait_ms)
    times = {
        "created_at": created, "started_at": started, "took_ms": took_ms,
        "finished_at": started + timedelta(milliseconds=took_ms), "age_ms": wait_ms + took_ms,
    }  # fmt: skip
    return row(dataset, **(times | changes))


def export_file(
    root: Path,
    dataset: Dataset,
    rows: Iterable[Row],
    name: str = "part-000-000.parquet",
    *,
    day: str = "2026-03-02",
    tag: str = "",
) -> Path:
    """Writes the rows as the file `name` of that day's partition, whatever their times say."""
    path = root / dataset.name / f"date={day}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith(".jsonl"):
        lines = [json.dumps({METADATA_KEY: tag or dataset.tag})]
        lines += [json.dumps(one, default=in_json) for one in rows]
        path.write_text("".join(f"{line}\n" for line in lines))
    else:
        schema = schema_of(dataset).with_metadata({METADATA_KEY: tag or dataset.tag})
        pq.write_table(pa.Table.from_pylist(list(rows), schema), path)
    return path


def in_json(value: datetime) -> str:
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")

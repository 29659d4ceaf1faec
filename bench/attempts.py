"""Attempts by the million, as an exporter that has compacted its days would have left them."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from routemaster.domain.datasets import ATTEMPTS
from routemaster.export.arrow import schema_of
from routemaster.export.files import DAY
from routemaster.export.folder import Folder
from routemaster.export.writing import publish

Ints = NDArray[np.int64]

DAYS, SUBSCRIBERS = 7, 100
FIRST_MS, DAY_MS = 1_794_182_400_000, 86_400_000  # Mon 9 Nov 2026
FAILING = 0.02
CHUNK_ROWS = 500_000


def write_attempts(root: str, rows: int, seed: int = 1) -> None:
    """`rows` in all, over a week; a few subscribers have most of them, as is usual."""
    folder = Folder.of(root)
    shares = 1 / np.arange(1, SUBSCRIBERS + 1)
    for day in range(DAYS):
        dice = np.random.default_rng([seed, day])
        count = rows * (day + 1) // DAYS - rows * day // DAYS
        who = np.sort(dice.choice(SUBSCRIBERS, count, p=shares / shares.sum()))
        first_ms = FIRST_MS + day * DAY_MS
        date = datetime.fromtimestamp(first_ms / 1000, UTC).date().isoformat()
        tables = (
            table(who[at : at + CHUNK_ROWS], first_ms, f"{day}-{at}-", dice)
            for at in range(0, count, CHUNK_ROWS)
        )
        last_ms = first_ms + DAY_MS - 1
        publish(folder, ATTEMPTS, date, DAY, f"{first_ms:013d}", f"{last_ms:013d}", tables)


def table(who: Ints, first_ms: int, prefix: str, dice: np.random.Generator) -> pa.Table:
    count = len(who)
    took = np.minimum(dice.lognormal(4.0, 0.8, count), 20_000).astype(np.int64)
    started = first_ms + dice.integers(0, DAY_MS - 20_000, count)
    started = started[np.lexsort((started, who))]  # `who` is in order already
    failed = dice.random(count) < FAILING
    created = started - dice.integers(500, 3_000, count)
    numbers = pa.array(np.arange(count, dtype=np.int64)).cast(pa.string())
    columns = {
        "id": joined(prefix, numbers),
        "subscriber": picked([f"subscriber-{n:03d}" for n in range(SUBSCRIBERS)], who),
        "lane": picked(["0"], np.zeros(count, dtype=np.int64)),
        "batch": joined(f"b{prefix}", numbers),
        "attempt": pa.array(1 + failed.astype(np.int32)),
        "events": pa.array(dice.integers(1, 101, count), pa.int32()),
        "bytes": pa.array(dice.integers(150, 15_000, count)),
        "first_seq": pa.array(np.arange(count, dtype=np.int64) * 100),
        "created_at": times(created),
        "started_at": times(started),
        "finished_at": times(started + took),
        "took_ms": pa.array(took),
        "age_ms": pa.array(started + took - created),
        "outcome": picked(["delivered", "failed"], failed.astype(np.int64)),
        "http_status": pa.array(np.where(failed, 503, 200), pa.int32()),
        "error": picked(["", "http_503"], failed.astype(np.int64)),
        "worker": picked(["worker-1", "worker-2"], dice.integers(0, 2, count)),
    }
    schema = schema_of(ATTEMPTS)
    return pa.Table.from_arrays([columns[field.name] for field in schema], schema=schema)


def times(millis: Ints) -> pa.Array:
    return pa.array(millis).cast(schema_of(ATTEMPTS).field("started_at").type)


def picked(names: list[str], codes: Ints) -> pa.Array:
    return pa.array(names).take(pa.array(codes))


def joined(prefix: str, numbers: pa.Array) -> pa.Array:
    return compute.binary_join_element_wise(prefix, numbers, "")

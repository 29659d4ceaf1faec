"""Which batches were processed, and how far each lane is."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Protocol

from routemaster.receiver.batch import Batch


class Store(Protocol):
    """What a receiver remembers. Keep it where your data is to process each batch exactly once."""

    def has(self, batch_id: str) -> bool: ...
    def last_of(self, lane: str) -> int | None: ...
    def remember(self, batch: Batch) -> None: ...


class Memory:
    """In this process: enough for one; forgets with it, and the oldest first."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._ids: OrderedDict[str, None] = OrderedDict()
        self._lanes: OrderedDict[str, int] = OrderedDict()
        self._lock = threading.Lock()

    def has(self, batch_id: str) -> bool:
        with self._lock:
            return batch_id in self._ids

    def last_of(self, lane: str) -> int | None:
        with self._lock:
            return self._lanes.get(lane)

    def remember(self, batch: Batch) -> None:
        with self._lock:
            self._ids[batch.id] = None
            self._lanes[batch.lane] = batch.last_seq
            self._lanes.move_to_end(batch.lane)
            for kept in (self._ids, self._lanes):
                if len(kept) > self._most:
                    kept.popitem(last=False)


class SqliteMemory:
    """In a file, for several processes on one machine, and over restarts."""

    def __init__(self, path: str | Path, most: int = 100_000) -> None:
        self._path = str(path)
        self._most = most
        with self._connected() as db:
            db.execute("CREATE TABLE IF NOT EXISTS batches (id TEXT PRIMARY KEY, at_ms INTEGER)")
            db.execute("CREATE INDEX IF NOT EXISTS batches_by_age ON batches (at_ms)")
            db.execute("CREATE TABLE IF NOT EXISTS lanes (lane TEXT PRIMARY KEY, last INTEGER)")

    def has(self, batch_id: str) -> bool:
        with self._connected() as db:
            found = db.execute("SELECT 1 FROM batches WHERE id = ?", (batch_id,)).fetchone()
        return found is not None

    def last_of(self, lane: str) -> int | None:
        with self._connected() as db:
            found = db.execute("SELECT last FROM lanes WHERE lane = ?", (lane,)).fetchone()
        return int(found[0]) if found else None

    def remember(self, batch: Batch) -> None:
        now_ms = time.time_ns() // 1_000_000
        with self._connected() as db:
            db.execute("INSERT OR IGNORE INTO batches VALUES (?, ?)", (batch.id, now_ms))
            db.execute("INSERT OR REPLACE INTO lanes VALUES (?, ?)", (batch.lane, batch.last_seq))
            db.execute(
                "DELETE FROM batches WHERE id IN "
                "(SELECT id FROM batches ORDER BY at_ms DESC LIMIT 10 OFFSET ?)",
                (self._most,),
            )

    def _connected(self) -> _Closing:
        # One for each call: threads and forks share none, and a batch is no hot path.
        return _Closing(sqlite3.connect(self._path, timeout=10))


class _Closing:
    """A transaction, and then the connection's end; sqlite3 does only the former."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        return self._connection.__enter__()

    def __exit__(self, *error: object) -> None:
        try:
            self._connection.__exit__(*error)  # type: ignore[arg-type]  # as it came
        finally:
            self._connection.close()

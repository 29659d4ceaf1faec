"""The datasets that are taken from time to time: counters, gauges and health."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from routemaster.demo.history import History, Series
from routemaster.demo.incidents import MINUTE_MS
from routemaster.demo.traffic import Ints
from routemaster.domain.datasets import COUNTERS, GAUGES, HEALTH
from routemaster.export.arrow import schema_of

SNAPSHOT_EVERY_MS = 10 * MINUTE_MS
IDLE_BYTES, EVENT_BYTES = 48 << 20, 110
WORKERS = 3


@dataclass(frozen=True, slots=True)
class Moments:
    """When snapshots are taken, and where the counters begin again."""

    first_ms: int
    end_ms: int
    epoch_ms: int | None

    @property
    def times(self) -> Ints:
        """The last one is within the last day: it counts what happened before it."""
        times = np.arange(self.first_ms, self.end_ms, SNAPSHOT_EVERY_MS, dtype=np.int64)
        return np.append(times, self.end_ms - 1)

    def epoch(self, now_ms: int) -> str:
        began_ms = self.first_ms
        if self.epoch_ms is not None and now_ms >= self.epoch_ms:
            began_ms = self.epoch_ms
        return f"{began_ms:x}"


def counters(sums: Mapping[Series, Ints], moments: Moments, from_ms: int, to_ms: int) -> pa.Table:
    """Where an epoch ends there are two snapshots, one of each: nothing was counted in between."""
    names = sorted(sums, key=_order)
    values = np.stack([sums[name] for name in names])
    times = moments.times
    epochs = np.asarray([moments.epoch(now_ms) for now_ms in times.tolist()])
    taken, chosen = times, values
    if moments.epoch_ms is not None and moments.epoch_ms > moments.first_ms:
        at = int(np.searchsorted(times, moments.epoch_ms))
        chosen = values.copy()
        chosen[:, at:] -= values[:, at : at + 1]
        chosen = np.insert(chosen, at, values[:, at], axis=1)
        taken, epochs = np.insert(times, at, times[at]), np.insert(epochs, at, epochs[0])
    day = (taken >= from_ms) & (taken < to_ms)
    tags = [dict(name) for name in names]
    columns = {
        field: _repeated([tag.get(field) for tag in tags], int(day.sum()))
        for field in ("name", "topic", "publisher", "subscriber", "outcome", "reason")
    }
    columns["taken_at"] = np.tile(taken[day], len(names))
    columns["epoch"] = np.tile(epochs[day], len(names))
    columns["value"] = chosen[:, day].ravel()
    return _table(schema_of(COUNTERS), columns)


def gauges(
    histories: Mapping[str, History], max_bytes: int, moments: Moments, from_ms: int, to_ms: int
) -> pa.Table:
    lanes = np.sum([one.lanes_queued for one in histories.values()], axis=0)
    found: dict[tuple[str, str, str, str], np.ndarray[tuple[int], np.dtype[np.float64]]] = {}

    def add(name: str, values: Ints | float, subscriber: str = "", queue: str = "",
            state: str = "") -> None:  # fmt: skip
        found[(name, subscriber, queue, state)] = np.zeros(len(moments.times)) + values

    for name, one in histories.items():
        add("events.queued", one.events_queued, name)
        add("batches.queued", one.batches_queued, name)
        add("batches.oldest_age_seconds", one.oldest_ms / 1000, name)  # type: ignore[arg-type]
    for queue in ("main", "aux"):
        for state in ("scheduled", "instant", "pending", "quarantined", "waiting"):
            is_busy = (queue, state) == ("main", "scheduled")
            add("jobs", lanes if is_busy else 0, queue=queue, state=state)
    add("redis.used_bytes", used_bytes(histories.values()))
    add("redis.max_bytes", max_bytes)
    add("redis.high_bytes", high_bytes(max_bytes))
    add("workers", WORKERS)
    day = (moments.times >= from_ms) & (moments.times < to_ms)
    keys, count = sorted(found), int(day.sum())
    columns = {
        field: _repeated([key[place] or None for key in keys], count)
        for place, field in enumerate(("name", "subscriber", "queue", "state"))
    }
    columns["taken_at"] = np.tile(moments.times[day], len(keys))
    columns["value"] = np.concatenate([found[key][day] for key in keys])
    return _table(schema_of(GAUGES), columns)


def used_bytes(histories: Iterable[History]) -> Ints:
    queued: Ints = np.sum([one.events_queued for one in histories], axis=0)
    return IDLE_BYTES + EVENT_BYTES * queued


def high_bytes(max_bytes: int) -> int:
    """As the bus has it when a tenth is to be kept free."""
    return max_bytes - max_bytes // 10


def health(
    histories: Mapping[str, History], moments: Moments, from_ms: int, to_ms: int
) -> pa.Table:
    day = (moments.times >= from_ms) & (moments.times < to_ms)
    names = sorted(histories)
    columns = {
        "taken_at": np.tile(moments.times[day], len(names)),
        "subscriber": _repeated(list(names), int(day.sum())),
        "state": np.concatenate([np.asarray(histories[name].states)[day] for name in names]),
        "health_points": np.concatenate([histories[name].health_points[day] for name in names]),
        "consecutive_failures": np.concatenate(
            [histories[name].consecutive_failures[day] for name in names]
        ),
    }
    return _table(schema_of(HEALTH), columns)


def _order(series: Series) -> tuple[str, ...]:
    tags = dict(series)
    return tuple(tags.get(name, "") for name in ("name", "subscriber", "topic", "outcome"))


def _repeated(values: Sequence[str | None], times: int) -> pa.Array:
    codes = pa.array(np.repeat(np.arange(len(values), dtype=np.int32), times))
    return pa.DictionaryArray.from_arrays(codes, pa.array(values, pa.string())).cast(pa.string())


def _table(schema: pa.Schema, columns: Mapping[str, object]) -> pa.Table:
    arrays = []
    for field in schema:
        column = columns[field.name]
        if not isinstance(column, pa.Array):
            column = pa.array(column)
        arrays.append(column.cast(field.type))
    return pa.Table.from_arrays(arrays, schema=schema)

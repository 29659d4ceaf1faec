"""What a subscriber's life looks like at each snapshot: sums, queues and health."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from routemaster.demo.incidents import Incident
from routemaster.demo.subscriber import DAMAGE, DELIVERED, FULL_HEALTH, THROTTLED, Life
from routemaster.demo.traffic import Bursts, Ints
from routemaster.domain.datasets import ATTEMPTS, DROPS
from routemaster.export.arrow import schema_of

# Name and tags of a counter.
Series = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class History:
    attempts: pa.Table
    drops: pa.Table
    sums: dict[Series, Ints]  # by snapshot, since the beginning
    events_queued: Ints
    batches_queued: Ints
    lanes_queued: Ints
    oldest_ms: Ints  # age
    health_points: Ints
    consecutive_failures: Ints
    states: list[str]


def history(life: Life, incidents: Sequence[Incident], snapshots: Ints, end_ms: int) -> History:
    attempts, drops = attempts_of(life), drops_of(life)
    queued = _events_queued(life, attempts, drops, snapshots)
    batches, lanes, oldest_ms = _batches_queued(life, snapshots, end_ms)
    health, failures = _health(attempts, snapshots)
    return History(
        attempts, drops, _sums(life, attempts, drops, snapshots), queued, batches, lanes, oldest_ms,
        health, failures, _states(life, incidents, snapshots),
    )  # fmt: skip


def attempts_of(life: Life) -> pa.Table:
    """In the order of the dataset; `id` is still empty: it is the rank in the whole stream."""
    rows = sorted(life.attempts, key=lambda row: row[7])
    columns = list(zip(*rows, strict=True)) or [()] * 13
    lane, batch, attempt, events, size, first_seq, created, started, finished = columns[:9]
    outcome, status, error, worker = columns[9:]
    began, ended, made = (np.asarray(c, dtype=np.int64) for c in (started, finished, created))
    names = [life.subscriber.name] * len(rows)
    values = [
        [""] * len(rows), names, lane, batch, attempt, events, size, first_seq, made, began, ended,
        ended - began, ended - made, outcome, status, error, worker,
    ]  # fmt: skip
    return _table(schema_of(ATTEMPTS), values)


def drops_of(life: Life) -> pa.Table:
    columns = list(zip(*life.drops, strict=True)) or [()] * 7
    lane, batch, events, first_seq, last_seq, created, dropped = columns
    count = len(life.drops)
    values = [
        [""] * count, [life.subscriber.name] * count, lane, batch, events, first_seq, last_seq,
        np.asarray(created, dtype=np.int64), np.asarray(dropped, dtype=np.int64),
        ["memory"] * count,
    ]  # fmt: skip
    return _table(schema_of(DROPS), values)


def _table(schema: pa.Schema, values: Sequence[object]) -> pa.Table:
    columns = [pa.array(column, field.type) for column, field in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)


def numbers(table: pa.Table, name: str) -> Ints:
    column = table.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    found: Ints = column.to_numpy().astype(np.int64)
    return found


def summed(at_ms: Ints, values: Ints, snapshots: Ints) -> Ints:
    """The sum of what came before each snapshot."""
    order = np.argsort(at_ms, kind="stable")
    sums = np.concatenate([[0], np.cumsum(values[order])])
    found: Ints = sums[np.searchsorted(at_ms[order], snapshots, side="left")]
    return found


def _sums(life: Life, attempts: pa.Table, drops: pa.Table, snapshots: Ints) -> dict[Series, Ints]:
    tag = ("subscriber", life.subscriber.name)
    finished, took = numbers(attempts, "finished_at"), numbers(attempts, "took_ms")
    outcomes = np.asarray(attempts.column("outcome").to_pylist(), dtype=object)
    is_delivered = outcomes == DELIVERED
    everything = np.ones(len(took), dtype=bool)

    def add(name: str, values: Ints, where: NDArray[np.bool_], *tags: tuple[str, str]) -> None:
        found[(("name", name), tag, *tags)] = summed(finished[where], values[where], snapshots)

    found: dict[Series, Ints] = {}
    for outcome in sorted(set(outcomes)):
        add("delivery.attempts", np.ones_like(took), outcomes == outcome, ("outcome", outcome))
    add("events.delivered", numbers(attempts, "events"), is_delivered)
    add("delivery.latency", numbers(attempts, "age_ms"), is_delivered)
    add("delivery.time", took, everything)
    add("delivery.time2", took**2, everything)
    found[(("name", "events.added"), tag)] = _arrived(life, snapshots)
    if len(drops):
        found[(("name", "events.dropped"), tag, ("reason", "memory"))] = summed(
            numbers(drops, "dropped_at"), numbers(drops, "events"), snapshots
        )
    return found


def _arrived(life: Life, snapshots: Ints) -> Ints:
    lanes: list[Bursts] = [lane.bursts for lane in life.lanes]
    found: Ints = np.sum([summed(one.at_ms, one.events, snapshots) for one in lanes], axis=0)
    return found


def _events_queued(life: Life, attempts: pa.Table, drops: pa.Table, snapshots: Ints) -> Ints:
    is_delivered = np.asarray(attempts.column("outcome").to_pylist(), dtype=object) == DELIVERED
    finished, events = numbers(attempts, "finished_at"), numbers(attempts, "events")
    delivered = summed(finished[is_delivered], events[is_delivered], snapshots)
    dropped = summed(numbers(drops, "dropped_at"), numbers(drops, "events"), snapshots)
    return _arrived(life, snapshots) - delivered - dropped


def _batches_queued(life: Life, snapshots: Ints, end_ms: int) -> tuple[Ints, Ints, Ints]:
    """How many, in how many lanes, and how old the oldest is."""
    count, lanes, oldest_ms = (np.zeros(len(snapshots), dtype=np.int64) for _ in range(3))
    for lane in life.lanes:
        begun, gone = lane.all_batches(end_ms)
        if not len(begun):
            continue
        left = np.searchsorted(np.sort(gone), snapshots, side="left")
        held = np.searchsorted(begun, snapshots, side="left") - left
        first = begun[np.minimum(left, len(begun) - 1)]  # a lane is a queue
        age_ms = np.where(held > 0, snapshots - first, 0)
        count, lanes = count + held, lanes + (held > 0)
        oldest_ms = np.maximum(oldest_ms, age_ms)
    return count, lanes, oldest_ms


def _health(attempts: pa.Table, snapshots: Ints) -> tuple[Ints, Ints]:
    """Points and failures in a row. Being asked to wait is no failure."""
    finished = numbers(attempts, "finished_at")
    outcomes = attempts.column("outcome").to_pylist()
    counted = [place for place in np.argsort(finished, kind="stable")
               if outcomes[place] != THROTTLED]  # fmt: skip
    points, failures = [FULL_HEALTH], [0]
    for place in counted:
        if outcomes[place] == DELIVERED:
            points.append(min(FULL_HEALTH, points[-1] + 1))
            failures.append(0)
        else:
            points.append(max(0, points[-1] - DAMAGE))
            failures.append(failures[-1] + 1)
    at = np.searchsorted(finished[counted], snapshots, side="left")
    return np.asarray(points, dtype=np.int64)[at], np.asarray(failures, dtype=np.int64)[at]


def _states(life: Life, incidents: Sequence[Incident], snapshots: Ints) -> list[str]:
    paused = [one for one in incidents
              if one.kind == "paused" and one.subscriber == life.subscriber.name]  # fmt: skip
    disabled_ms = life.disabled_ms

    def state(now_ms: int) -> str:
        if disabled_ms is not None and now_ms > disabled_ms:
            return "disabled"
        return "paused" if any(one.covers(now_ms) for one in paused) else "active"

    return [state(now_ms) for now_ms in snapshots.tolist()]

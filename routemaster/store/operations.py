"""Deliveries and what was tried: a subscriber's history, joined with the batches that wait.

Nothing is written for a batch before its first attempt: until then its lane knows all about it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from routemaster.domain.attempt import DELIVERED, DROPPED, Attempt
from routemaster.domain.batch import Batch
from routemaster.domain.job import deliver
from routemaster.domain.lane import lane_id
from routemaster.store import scripts
from routemaster.store.jobs import HEADER_ITEMS, batch, why
from routemaster.store.keys import Keys
from routemaster.store.link import Link
from routemaster.store.subscribers import MAIN

KEPT_MS = 24 * 3600 * 1000
QUEUED, RUNNING, SUCCESS, ERROR, DROPPED_STATUS = (
    "QUEUED", "RUNNING", "SUCCESS", "ERROR", "DROPPED",
)  # fmt: skip
STATUSES = (QUEUED, RUNNING, SUCCESS, ERROR, DROPPED_STATUS)
# Looked at for one listing: a subscriber may have very many lanes, and batches in each.
MOST_LANES = 200
FAILURES = ("failed", "gone")


@dataclass(frozen=True, slots=True)
class Operation:
    bid: str
    subscriber: str
    lane: str
    status: str
    created_ms: int
    updated_ms: int
    events: int
    first_seq: int
    attempts: tuple[Attempt, ...]
    reason: str = ""  # why its job was set aside: then nobody tries it until it is redelivered

    @property
    def place(self) -> tuple[int, str]:
        """Where it stands in a listing; no two share one."""
        return self.updated_ms, self.bid


@dataclass(frozen=True, slots=True)
class Held:
    """Batches that a worker has, and those whose job is in quarantine, with the reason."""

    running: set[str] = field(default_factory=set)
    set_aside: dict[str, str] = field(default_factory=dict)


class Operations:
    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys

    def find(self, bid: str, subscribers: Iterable[str], now_ms: int) -> Operation | None:
        """The delivery of a batch to one of these subscribers."""
        waiting = self._waiting([bid]).get(bid)
        for name in [waiting.subscriber] if waiting else subscribers:
            attempts = [row for row in self._history(name, now_ms) if row.bid == bid]
            if waiting or attempts:
                held = self._held(name, [waiting] if waiting else [])
                return operation(bid, name, waiting, attempts, held)
        return None

    def recent(self, subscriber: str, most_waiting: int, now_ms: int) -> list[Operation]:
        """Newest first: what is in the history, and the first batches of each lane."""
        tried: dict[str, list[Attempt]] = {}
        for row in self._history(subscriber, now_ms):
            tried.setdefault(row.bid, []).append(row)
        unsettled = [bid for bid, rows in tried.items() if rows[-1].outcome != DELIVERED]
        waiting = self._waiting([*self._queued(subscriber, most_waiting), *unsettled])
        held = self._held(subscriber, waiting.values())
        found = [
            operation(bid, subscriber, waiting.get(bid), tried.get(bid, []), held)
            for bid in tried.keys() | waiting.keys()
        ]
        return sorted(found, key=lambda one: one.place, reverse=True)

    def counts(self, subscriber: str) -> dict[str, int]:
        """Attempts that succeeded and failed, and events given up, since the counters began."""
        tag = f"subscriber={subscriber}"
        fields = [f"delivery.attempts,outcome={name},{tag}" for name in (DELIVERED, *FAILURES)]
        reasons = [f"events.dropped,reason={why},{tag}" for why in ("memory", "operator")]
        values = self._link.call("HMGET", self._keys.counters, *fields, *reasons)
        delivered, failed, gone, *dropped = [int(value or 0) for value in values]
        return {SUCCESS: delivered, ERROR: failed + gone, DROPPED_STATUS: sum(dropped)}

    def hasten(self, subscriber: str, lane: str) -> str:
        """Make a lane due now; returns the state its job was in, '' when it has none."""
        k = self._keys
        name = lane_id(subscriber, lane)
        where = [
            k.index(MAIN), k.scheduled(MAIN), k.quarantine(MAIN), k.reclaims(MAIN),
            k.lane_prefix + name,
        ]  # fmt: skip
        state: bytes = self._link.run(scripts.load().lane_hasten, where, [name, "", k.wake_channel])
        return state.decode()

    def _history(self, subscriber: str, now_ms: int) -> list[Attempt]:
        rows = self._link.call("LRANGE", self._keys.operations(subscriber), 0, -1)
        found = [Attempt.parse(row) for row in rows]
        return [row for row in found if row and row.finished_ms > now_ms - KEPT_MS]

    def _queued(self, subscriber: str, most: int) -> list[str]:
        k = self._keys
        lanes = self._link.call(
            "ZRANGE", k.lanes(subscriber), "(0", "+inf", "BYSCORE", "LIMIT", 0, MOST_LANES
        )
        prefix = k.lane_batches_prefix + lane_id(subscriber, "")
        lists = self._link.many([("LRANGE", prefix + lane.decode(), 0, most - 1) for lane in lanes])
        return [bid.decode() for bids in lists for bid in bids]

    def _waiting(self, bids: list[str]) -> dict[str, Batch]:
        """The batches among these that are still there; their events are only counted."""
        keys = [self._keys.batch_prefix + bid for bid in bids]
        kinds = self._link.many([("TYPE", key) for key in keys])
        there = [(bid, key) for bid, key, kind in zip(bids, keys, kinds, strict=True)
                 if kind in (b"list", "list")]  # fmt: skip
        commands = [("LRANGE", key, 0, HEADER_ITEMS - 1) for _, key in there]
        heads = self._link.many(commands)
        lengths = self._link.many([("LLEN", key) for _, key in there])
        found = {}
        for (bid, _), head, length in zip(there, heads, lengths, strict=True):
            held = batch(bid, [*head, *[b""] * (length - HEADER_ITEMS)])
            if held:
                found[bid] = held
        return found

    def _held(self, subscriber: str, waiting: Iterable[Batch]) -> Held:
        """The first batches of lanes whose job is pending, or in quarantine."""
        k = self._keys
        lanes = sorted({held.lane for held in waiting})
        if not lanes:
            return Held()
        jobs = {lane: deliver(subscriber, lane).dump() for lane in lanes}
        states = self._link.call("HMGET", k.index(MAIN), *jobs.values())
        state_of = {lane: (state or b"")[:1] for lane, state in zip(lanes, states, strict=True)}
        held = [lane for lane in lanes if state_of[lane] in (b"p", b"q")]
        prefix = k.lane_batches_prefix + lane_id(subscriber, "")
        heads = self._link.many([("LINDEX", prefix + lane, 0) for lane in held])
        rows = self._link.many([("HGET", k.quarantine(MAIN), jobs[lane]) for lane in held])
        found = Held()
        for lane, head, row in zip(held, heads, rows, strict=True):
            if head and state_of[lane] == b"p":
                found.running.add(head.decode())
            elif head:
                found.set_aside[head.decode()] = why(row or b"")[1]
        return found


def operation(
    bid: str, subscriber: str, waiting: Batch | None, attempts: list[Attempt], held: Held
) -> Operation:
    last = attempts[-1] if attempts else None
    if bid in held.running:
        status = RUNNING
    elif bid in held.set_aside:
        status = ERROR
    elif waiting:
        status = ERROR if last and last.outcome in FAILURES else QUEUED
    else:
        status = SUCCESS if last and last.outcome == DELIVERED else DROPPED_STATUS
    source = waiting or last
    assert source is not None, "neither waiting nor tried"
    return Operation(
        bid=bid,
        subscriber=subscriber,
        lane=source.lane,
        status=status,
        created_ms=source.created_ms,
        updated_ms=last.finished_ms if last else source.created_ms,
        events=len(waiting.events) if waiting else last.events if last else 0,
        first_seq=source.first_seq,
        attempts=tuple(row for row in attempts if row.outcome != DROPPED),
        reason=held.set_aside.get(bid, ""),
    )

"""Deliveries and what was tried: a subscriber's history, joined with the batches that wait.

Nothing is written for a batch before its first attempt: until then its lane knows all about it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from routemaster.domain.attempt import DELIVERED, DROPPED, Attempt
from routemaster.domain.batch import Batch
from routemaster.domain.job import deliver
from routemaster.domain.lane import lane_id
from routemaster.store import scripts
from routemaster.store.jobs import HEADER_ITEMS, batch
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

    @property
    def place(self) -> tuple[int, str]:
        """Where it stands in a listing; no two share one."""
        return self.updated_ms, self.bid


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
                running = self._running(name, [waiting] if waiting else [])
                return operation(bid, name, waiting, attempts, running)
        return None

    def recent(self, subscriber: str, most_waiting: int, now_ms: int) -> list[Operation]:
        """Newest first: what is in the history, and the first batches of each lane."""
        tried: dict[str, list[Attempt]] = {}
        for row in self._history(subscriber, now_ms):
            tried.setdefault(row.bid, []).append(row)
        unsettled = [bid for bid, rows in tried.items() if rows[-1].outcome != DELIVERED]
        waiting = self._waiting([*self._queued(subscriber, most_waiting), *unsettled])
        running = self._running(subscriber, waiting.values())
        found = [
            operation(bid, subscriber, waiting.get(bid), tried.get(bid, []), running)
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

    def _running(self, subscriber: str, waiting: Iterable[Batch]) -> set[str]:
        """Batches that a worker holds: the first of each lane whose job is pending."""
        k = self._keys
        lanes = sorted({held.lane for held in waiting})
        if not lanes:
            return set()
        jobs = [deliver(subscriber, lane).dump() for lane in lanes]
        states = self._link.call("HMGET", k.index(MAIN), *jobs)
        held = [
            lane for lane, state in zip(lanes, states, strict=True) if (state or b"")[:1] == b"p"
        ]
        prefix = k.lane_batches_prefix + lane_id(subscriber, "")
        heads = self._link.many([("LINDEX", prefix + lane, 0) for lane in held])
        return {head.decode() for head in heads if head}


def operation(
    bid: str, subscriber: str, waiting: Batch | None, attempts: list[Attempt], running: set[str]
) -> Operation:
    last = attempts[-1] if attempts else None
    if bid in running:
        status = RUNNING
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
    )

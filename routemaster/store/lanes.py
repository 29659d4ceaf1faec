"""Lanes and batches from the outside: give up the oldest, free what was unhooked, audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgpack

from routemaster.domain.job import deliver
from routemaster.domain.lane import lane_id
from routemaster.store import scripts
from routemaster.store.jobs import Limits
from routemaster.store.keys import Keys
from routemaster.store.link import Arg, Link, Reply
from routemaster.store.subscribers import MAIN

DROP_RECORDS = 1000
SWEEP_BATCHES = 1000
AUDIT_BATCHES = 20_000
# How long a lane that is empty keeps its sequence number.
IDLE_LANE_MS = 24 * 3600 * 1000
# Lanes or subscribers asked about in one round trip: bounds the size of a reply.
PAGE = 1000


@dataclass(frozen=True, slots=True)
class Drop:
    """Events that will never be delivered, and why."""

    lane: str
    first_seq: int
    last_seq: int
    reason: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Holder:
    """A subscriber, or one of its lanes, with batches. A lane's events are not counted anywhere:
    there `events` is its batches, and compares lanes of one subscriber."""

    name: str
    events: int
    batches: int
    oldest_ms: int = 0


@dataclass(frozen=True, slots=True)
class LaneStanding:
    """`state` is the letter of its job: see The life of a job."""

    name: str
    batches: int
    oldest_ms: int
    state: str
    due_ms: int  # 0 when it is not scheduled


class LaneStore:
    def __init__(self, link: Link, keys: Keys, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._link = link
        self._keys = keys

    def drop(
        self, subscriber: str, lane: str, most: int, reason: str, now_ms: int | str = ""
    ) -> tuple[int, int]:
        """Give up a lane's oldest batches. Returns how many batches and events are gone."""
        k = self._keys
        where = [
            k.index(MAIN), k.scheduled(MAIN), k.instant(MAIN), k.pending(MAIN), k.leases(MAIN),
            k.reclaims(MAIN), k.quarantine(MAIN), k.active, k.event_gauges, k.batch_gauges,
            k.counters, k.drops(subscriber), k.waiting_prefix, k.subscriber_prefix,
            k.lane_prefix, k.lane_batches_prefix, k.batch_prefix, k.lanes_prefix,
            k.operations(subscriber), k.dropped,
        ]  # fmt: skip
        name = lane_id(subscriber, lane)
        history, stream = self._limits.history, self._limits.stream
        args: list[Arg] = [name, most, reason, now_ms, DROP_RECORDS, history, stream]
        batches, events = self._link.run(scripts.load().lane_drop, where, args)
        return batches, events

    def drops(self, subscriber: str) -> list[Drop]:
        rows = self._link.call("LRANGE", self._keys.drops(subscriber), 0, -1)
        return [
            Drop(lane, int(first), int(last), reason, int(at))
            for lane, first, last, reason, at in map(msgpack.unpackb, rows)
        ]

    def holders(self) -> list[Holder]:
        """Every subscriber that has batches."""
        k = self._keys
        events, batches = (
            dict(zip(flat[::2], map(int, flat[1::2]), strict=True))
            for flat in self._link.many([("HGETALL", k.event_gauges), ("HGETALL", k.batch_gauges)])
        )
        return [
            Holder(name.decode(), events.get(name, 0), count)
            for name, count in batches.items()
            if count > 0
        ]

    def oldest_ms(self, subscribers: Sequence[str]) -> dict[str, int]:
        """When the oldest batch of each was begun; those without batches are left out."""
        first = ("(0", "+inf", "BYSCORE", "LIMIT", 0, 1, "WITHSCORES")
        lanes = [self._keys.lanes(name) for name in subscribers]
        rows = self._paged([("ZRANGE", key, *first) for key in lanes])
        return {name: int(row[1]) for name, row in zip(subscribers, rows, strict=True) if row}

    def holding_lanes(self, subscriber: str) -> list[Holder]:
        k = self._keys
        flat = self._link.call("ZRANGE", k.lanes(subscriber), "(0", "+inf", "BYSCORE", "WITHSCORES")
        lanes = [name.decode() for name in flat[::2]]
        lengths = self._paged(
            [("LLEN", k.lane_batches_prefix + lane_id(subscriber, lane)) for lane in lanes]
        )
        return [
            Holder(lane, count, count, int(score))
            for lane, count, score in zip(lanes, lengths, flat[1::2], strict=True)
            if count > 0
        ]

    def oldest(self, subscriber: str, most: int) -> tuple[list[LaneStanding], int]:
        """The lanes that have waited longest, and how many more there are."""
        k = self._keys
        key = k.lanes(subscriber)
        flat, total = self._link.many(
            [
                ("ZRANGE", key, "(0", "+inf", "BYSCORE", "LIMIT", 0, most, "WITHSCORES"),
                ("ZCOUNT", key, "(0", "+inf"),
            ]
        )
        lanes = [name.decode() for name in flat[::2]]
        if not lanes:
            return [], 0
        ids = [lane_id(subscriber, lane) for lane in lanes]
        jobs = [deliver(subscriber, lane).dump() for lane in lanes]
        states, due, *lengths = self._link.many(
            [
                ("HMGET", k.index(MAIN), *jobs),
                ("ZMSCORE", k.scheduled(MAIN), *jobs),
                *(("LLEN", k.lane_batches_prefix + id_) for id_ in ids),
            ]
        )
        return [
            LaneStanding(lane, count, int(since), (state or b"")[:1].decode(), int(at or 0))
            for lane, count, since, state, at in zip(
                lanes, lengths, flat[1::2], states, due, strict=True
            )
        ], max(0, total - len(lanes))

    def _paged(self, commands: Sequence[Sequence[Arg]]) -> list[Reply]:
        return [
            reply
            for start in range(0, len(commands), PAGE)
            for reply in self._link.many(commands[start : start + PAGE])
        ]

    def sweep(self, most: int = SWEEP_BATCHES) -> bool:
        """Free some of what unsubscribing unhooked; True while there is more."""
        k = self._keys
        where = [k.trash, k.trash_prefix, k.batch_prefix]
        _, left = self._link.run(scripts.load().batches_sweep, where, [most])
        return bool(left)

    def audit(self, subscriber: str, now_ms: int | str = "") -> list[tuple[str, str]]:
        """Repair what should not be; returns what was found, which should be nothing."""
        k = self._keys
        where = [
            k.index(MAIN), k.scheduled(MAIN), k.instant(MAIN), k.pending(MAIN), k.leases(MAIN),
            k.quarantine(MAIN), k.active, k.event_gauges, k.batch_gauges, k.lanes(subscriber),
            k.waiting_prefix, k.lane_prefix, k.lane_batches_prefix, k.batch_prefix,
        ]  # fmt: skip
        args = [subscriber, now_ms, AUDIT_BATCHES, IDLE_LANE_MS]
        found = self._link.run(scripts.load().subscriber_audit, where, args)
        return [(what.decode(), lane.decode()) for what, lane in found]

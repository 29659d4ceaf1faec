"""The job queues `main` (deliveries, one job per lane) and `aux` (housekeeping)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import msgpack

from routemaster.domain.attempt import Attempt
from routemaster.domain.batch import Batch
from routemaster.domain.health import DAMAGE
from routemaster.domain.receiver import Receiver
from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Arg, Call, Link, Reply
from routemaster.store.replies import number, text

# Promoted in one take. More stay due and are promoted by the next.
PROMOTIONS = 1000
HEADER_ITEMS = 5
RANGE = re.compile(rb"(\d{1,15})-(\d{1,15})")


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept of what was tried and dropped; no row for a stream that nobody drains."""

    history: int = 1000
    stream: int = 0


@dataclass(frozen=True, slots=True)
class Lease:
    """`batch` is None for a job without a lane, and for a batch that vanished from Redis."""

    job: bytes
    fence: str
    bid: str
    batch: Batch | None
    receiver: Receiver | None
    # First and last numbers of what was dropped in this lane, and not told yet.
    dropped: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Taken:
    now_ms: int
    next_due_ms: int | None
    leases: list[Lease]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A job that nobody runs until it is released, since when and why."""

    queue: str
    job: bytes
    at_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A queue in every state: what tests compare."""

    scheduled: dict[bytes, int] = field(default_factory=dict)
    instant: list[bytes] = field(default_factory=list)
    pending: dict[bytes, int] = field(default_factory=dict)
    quarantined: set[bytes] = field(default_factory=set)
    index: dict[bytes, bytes] = field(default_factory=dict)


class JobQueue:
    """`now_ms` is only passed by tests: '' lets the scripts read the server's clock."""

    def __init__(self, link: Link, keys: Keys, name: str, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._link = link
        self._keys = keys
        self.name = name
        self._scheduled = keys.scheduled(name)
        self._instant = keys.instant(name)
        self._pending = keys.pending(name)
        self._leases = keys.leases(name)
        self._reclaims = keys.reclaims(name)
        self._index = keys.index(name)
        self._quarantine = keys.quarantine(name)

    def push(self, job: bytes, run_at_ms: int | str = "") -> bool:
        """False when the queue has the job already, in whatever state."""
        where = [self._index, self._scheduled, self._instant]
        args = [job, run_at_ms, self._keys.wake_channel]
        return bool(self._link.run(scripts.load().queue_push, where, args))

    def take(
        self,
        worker: str,
        lease_id: str,
        lease_ms: int,
        most: int,
        *,
        repeated: bool = False,
        now_ms: int | str = "",
    ) -> Taken:
        """Lease up to `most` due jobs. `repeated`: the reply to the same call was lost."""
        call = self.take_call(worker, lease_id, lease_ms, most, repeated=repeated, now_ms=now_ms)
        return taken(self._link.run_call(call))

    def take_call(
        self,
        worker: str,
        lease_id: str,
        lease_ms: int,
        most: int,
        *,
        repeated: bool = False,
        now_ms: int | str = "",
    ) -> Call:
        k = self._keys
        where = [
            self._scheduled, self._instant, self._pending, self._leases, self._index, k.fences,
            k.active, k.waiting_prefix, k.subscriber_prefix, k.lane_prefix,
            k.lane_batches_prefix, k.batch_prefix, self._quarantine,
        ]  # fmt: skip
        args = [now_ms, worker, lease_id, lease_ms, most, PROMOTIONS, int(repeated)]
        return Call(scripts.load().queue_take, where, args)

    def renew(self, job: bytes, fence: str, lease_ms: int, now_ms: int | str = "") -> bool:
        """False when the lease is lost."""
        args = [job, fence, now_ms, lease_ms]
        where = [self._pending, self._leases]
        return bool(self._link.run(scripts.load().queue_renew, where, args))

    def ack(
        self,
        job: bytes,
        fence: str,
        bid: str = "",
        *,
        health: int = 0,
        attempt: Attempt | None = None,
        now_ms: int | str = "",
    ) -> bool:
        """The job is done and its batch delivered. False when the lease is lost."""
        call = self.ack_call(job, fence, bid, health=health, attempt=attempt, now_ms=now_ms)
        return bool(self._link.run_call(call)[0])

    def ack_call(
        self,
        job: bytes,
        fence: str,
        bid: str = "",
        *,
        health: int = 0,
        attempt: Attempt | None = None,
        now_ms: int | str = "",
    ) -> Call:
        k = self._keys
        where = [
            self._pending, self._leases, self._reclaims, self._index, self._scheduled,
            self._instant, k.active, k.event_gauges, k.batch_gauges, k.counters,
            k.waiting_prefix, k.subscriber_prefix, k.lane_prefix, k.lane_batches_prefix,
            k.batch_prefix, k.lanes_prefix, k.operations_prefix, k.attempts,
        ]  # fmt: skip
        args = [job, fence, bid, now_ms, health, k.wake_channel, *self._noted(job, attempt)]
        return Call(scripts.load().queue_ack, where, args)

    def nack(
        self,
        job: bytes,
        fence: str,
        delay_ms: int,
        *,
        damage: int = 0,
        attempted: bool = True,
        attempt: Attempt | None = None,
        now_ms: int | str = "",
    ) -> bool:
        """Try again after a while. False when the lease is lost."""
        call = self.nack_call(
            job, fence, delay_ms, damage=damage, attempted=attempted, attempt=attempt, now_ms=now_ms
        )
        return bool(self._link.run_call(call))

    def nack_call(
        self,
        job: bytes,
        fence: str,
        delay_ms: int,
        *,
        damage: int = 0,
        attempted: bool = True,
        attempt: Attempt | None = None,
        now_ms: int | str = "",
    ) -> Call:
        k = self._keys
        where = [
            self._pending, self._leases, self._reclaims, self._index, self._scheduled,
            self._instant, k.active, k.waiting_prefix, k.subscriber_prefix, k.lane_prefix,
            k.lane_batches_prefix, k.batch_prefix, k.counters, k.operations_prefix, k.attempts,
        ]  # fmt: skip
        args = [
            job, fence, now_ms, delay_ms, damage, int(attempted), k.wake_channel,
            *self._noted(job, attempt),
        ]  # fmt: skip
        return Call(scripts.load().queue_nack, where, args)

    def _noted(self, job: bytes, attempt: Attempt | None) -> list[Arg]:
        history, stream = self._limits.history, self._limits.stream
        if attempt is None:
            return ["", "", "", 0, history, stream]
        row: Arg = attempt.stream_row(subscriber_of(job)) if stream else ""
        return [attempt.history_row(), row, attempt.outcome, attempt.took_ms, history, stream]

    def scrub(
        self, most: int = 100, quarantine_after: int = 0, now_ms: int | str = ""
    ) -> tuple[int, int]:
        """Give expired leases back. Returns how many went back, and how many were set aside."""
        k = self._keys
        where = [
            self._pending, self._leases, self._reclaims, self._index, self._instant,
            self._quarantine, k.active, k.waiting_prefix, k.subscriber_prefix,
            k.lane_batches_prefix, k.batch_prefix, k.counters, k.operations_prefix, k.attempts,
        ]  # fmt: skip
        args = [
            now_ms, most, quarantine_after, k.wake_channel, DAMAGE, self._limits.history,
            self._limits.stream,
        ]  # fmt: skip
        moved, quarantined = self._link.run(scripts.load().queue_scrub, where, args)
        return moved, quarantined

    def audit(self, page: int = 1000, now_ms: int | str = "") -> list[tuple[str, bytes]]:
        """Repair what should not be; returns what was found, which should be nothing."""
        k = self._keys
        where = [
            self._index, self._scheduled, self._instant, self._pending, self._leases,
            self._quarantine, self._reclaims, k.lane_prefix, k.waiting_prefix,
        ]  # fmt: skip
        found: list[tuple[str, bytes]] = []
        cursor = b"0"
        while True:
            args: list[Arg] = [cursor, page, now_ms]
            cursor, *rows = self._link.run(scripts.load().queue_audit, where, args)
            found += [(what.decode(), job) for what, job in rows]
            if cursor == b"0":
                return found

    def quarantined(self) -> list[Quarantined]:
        found = pairs(self._link.call("HGETALL", self._quarantine))
        return sorted(
            (Quarantined(self.name, job, *why(row)) for job, row in found),
            key=lambda one: (one.at_ms, one.job),
        )

    def release(self, job: bytes, now_ms: int | str = "") -> bool:
        """Due now; False when it is not in quarantine."""
        where = [self._index, self._scheduled, self._quarantine, self._reclaims]
        args = [job, now_ms, self._keys.wake_channel]
        return bool(self._link.run(scripts.load().queue_release, where, args))

    def lessees(self) -> list[str]:
        """Who holds each job that is leased now."""
        rows = self._link.call("HVALS", self._leases)
        return [words[1].decode() for words in map(bytes.split, rows) if len(words) == 3]

    def due(self) -> int:
        """How many jobs could run now, by Redis' own clock."""
        (seconds, _), instant = self._link.many([("TIME",), ("LLEN", self._instant)])
        now_ms = int(seconds) * 1000 + 999
        return int(instant) + int(self._link.call("ZCOUNT", self._scheduled, "-inf", now_ms))

    def snapshot(self) -> Snapshot:
        scheduled, instant, pending, quarantined, index = self._link.many(
            [
                ("ZRANGE", self._scheduled, 0, -1, "WITHSCORES"),
                ("LRANGE", self._instant, 0, -1),
                ("ZRANGE", self._pending, 0, -1, "WITHSCORES"),
                ("HKEYS", self._quarantine),
                ("HGETALL", self._index),
            ],
            atomic=True,
        )
        return Snapshot(
            scores(scheduled), instant, scores(pending), set(quarantined), dict(pairs(index))
        )


def why(row: bytes) -> tuple[int, str]:
    """Since when a job is in quarantine, and the reason; Redis may hold anything."""
    try:
        at, reason = msgpack.unpackb(row, unicode_errors="replace")
        return int(at), str(reason)
    except (ValueError, TypeError, msgpack.UnpackException):
        return 0, "unknown"


def subscriber_of(job: bytes) -> str:
    _, (subscriber, _) = msgpack.unpackb(job)
    return str(subscriber)


def taken(reply: Reply) -> Taken:
    now, next_due, *leases = reply
    return Taken(int(now), int(next_due) if next_due else None, [lease(row) for row in leases])


def lease(row: list[Any]) -> Lease:
    job, fence, bid, items, fields, dropped = row
    held = batch(bid.decode(), items)
    reached = receiver(held, fields) if held else None
    return Lease(job, fence.decode(), bid.decode(), held, reached, ranges(dropped))


def ranges(text: bytes) -> tuple[tuple[int, int], ...]:
    return tuple((int(first), int(last)) for first, last in RANGE.findall(text))


def receiver(held: Batch, fields: list[bytes | None]) -> Receiver:
    callback, uuid, secret, previous, health = fields
    return Receiver(
        name=held.subscriber,
        callback=text(callback),
        uuid=text(uuid),
        secrets=tuple(text(found) for found in (secret, previous) if found),
        health_points=number(health),
    )


def batch(bid: str, items: list[bytes]) -> Batch | None:
    if len(items) < HEADER_ITEMS:
        return None
    subscriber, created, attempts, lane, first_seq = items[:HEADER_ITEMS]
    return Batch(
        bid, text(subscriber), text(lane), number(created), number(attempts), number(first_seq),
        tuple(items[HEADER_ITEMS:]),
    )  # fmt: skip


def pairs(flat: list[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


def scores(flat: list[bytes]) -> dict[bytes, int]:
    return {member: int(score) for member, score in pairs(flat)}

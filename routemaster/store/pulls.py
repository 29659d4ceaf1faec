"""Batches that their subscriber takes itself: a lease on its next lane, as a worker has one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from routemaster.domain.attempt import Attempt
from routemaster.domain.batch import Batch
from routemaster.domain.job import deliver
from routemaster.domain.lane import lane_id
from routemaster.store import scripts
from routemaster.store.jobs import HEADER_ITEMS, JobQueue, Lease, batch, lease
from routemaster.store.keys import Keys
from routemaster.store.link import Link
from routemaster.store.subscribers import MAIN

LEASE = re.compile(rb"(\d+) pull/\S+ [\w-]+/(\d{1,15})/(\d{1,15})")
# A worker's name in the history.
PULLER = "pull"


class Pull(Enum):
    TAKEN = "taken"
    NONE = "none"
    PUSHED = "pushed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Pulled:
    """`lease` and `until_ms` are there when something was taken."""

    how: Pull
    now_ms: int
    until_ms: int = 0
    lease: Lease | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A batch under a puller's lease."""

    job: bytes
    fence: str
    batch: Batch
    events: int
    taken_ms: int
    now_ms: int  # by Redis' clock, as the time it was taken
    sent_bytes: int

    def attempt(self, outcome: str, error: str = "") -> Attempt:
        return Attempt(
            lane=self.batch.lane,
            bid=self.batch.bid,
            number=self.batch.attempts + 1,
            events=self.events,
            sent_bytes=self.sent_bytes,
            created_ms=self.batch.created_ms,
            started_ms=self.taken_ms,
            finished_ms=max(self.now_ms, self.taken_ms),
            outcome=outcome,
            error=error,
            worker=PULLER,
            first_seq=self.batch.first_seq,
        )


class PullStore:
    def __init__(self, link: Link, keys: Keys, main: JobQueue) -> None:
        self._link = link
        self._keys = keys
        self._main = main

    def promote(self, now_ms: int | str = "") -> None:
        """What has come due, of everybody: workers do it too, if they are there and have time."""
        self._main.take("web", "none", 1, 0, now_ms=now_ms)

    def take(
        self,
        subscriber: str,
        lease_id: str,
        lease_ms: int,
        *,
        repeated: bool = False,
        now_ms: int | str = "",
    ) -> Pulled:
        """`repeated`: what this lease id holds already is given again, as long as it holds it."""
        k = self._keys
        where = [
            k.pending(MAIN), k.leases(MAIN), k.index(MAIN), k.fences, k.active,
            k.quarantine(MAIN), k.waiting_prefix, k.subscriber_prefix, k.lane_prefix,
            k.lane_batches_prefix, k.batch_prefix,
        ]  # fmt: skip
        args = [now_ms, subscriber, lease_id, lease_ms, int(repeated)]
        now, how, *rest = self._link.run(scripts.load().pull_take, where, args)
        if not rest:
            return Pulled(Pull(how.decode()), int(now))
        until_ms, row = rest
        return Pulled(Pull(how.decode()), int(now), int(until_ms), lease(row))

    def held(self, subscriber: str, bid: str) -> Held | None:
        """The batch, while somebody pulls it: a lane's first, leased. None otherwise."""
        k = self._keys
        key = k.batch_prefix + bid
        if self._link.call("TYPE", key) not in (b"list", "list"):
            return None
        header, length = self._link.many([("LRANGE", key, 0, HEADER_ITEMS - 1), ("LLEN", key)])
        found = batch(bid, header)
        if found is None or found.subscriber != subscriber:
            return None
        job = deliver(subscriber, found.lane).dump()
        # In this order: while the fence holds, the lane's first stays its first. No transaction:
        # a full Redis refuses those.
        row, first, (seconds, micros) = self._link.many(
            [
                ("HGET", k.leases(MAIN), job),
                ("LINDEX", k.lane_batches_prefix + lane_id(subscriber, found.lane), 0),
                ("TIME",),
            ]
        )
        match = LEASE.fullmatch(row or b"")
        if match is None or first != bid.encode():
            return None
        fence, taken_ms, sent_bytes = match.groups()
        events, now_ms = length - HEADER_ITEMS, int(seconds) * 1000 + int(micros) // 1000
        return Held(job, fence.decode(), found, events, int(taken_ms), now_ms, int(sent_bytes))

    def until_ms(self, job: bytes) -> int:
        """When its lease ends; 0 when it has none."""
        return int(self._link.call("ZSCORE", self._keys.pending(MAIN), job) or 0)

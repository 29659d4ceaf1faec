"""What the scripts should do, said in plain Python: no Redis, no keys, no counters to go wrong."""

from __future__ import annotations

import fnmatch
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from routemaster.domain.health import DAMAGE
from routemaster.domain.job import deliver
from routemaster.domain.lane import lane_of
from routemaster.store.lanes import IDLE_LANE_MS
from routemaster.store.subscribers import SECRET_OVERLAP_MS


class Refused(Exception):
    """The publish must raise what this names, and change nothing."""


@dataclass(eq=False)
class Batch:
    created: int
    first: int
    events: list[bytes] = field(default_factory=list)
    attempts: int = 0
    bid: str = ""  # once a worker has seen it, every worker sees the same


@dataclass(eq=False)
class Job:
    packed: bytes
    lane: Lane | None
    state: str = "s"
    due: int = 0
    until: int = 0
    holder: tuple[str, str] = ("", "")
    fence: str = ""
    reclaims: int = 0
    told: frozenset[int] = frozenset()  # dropped numbers that its holder knows of


@dataclass(eq=False)
class Queue:
    jobs: dict[bytes, Job] = field(default_factory=dict)
    instant: list[Job] = field(default_factory=list)

    def in_state(self, state: str) -> list[Job]:
        return [job for job in self.jobs.values() if job.state == state]

    def ordered(self, state: str, when: str, upto: int) -> list[Job]:
        """As a sorted set gives them: by score, then by bytes."""
        found = [job for job in self.in_state(state) if getattr(job, when) <= upto]
        return sorted(found, key=lambda job: (getattr(job, when), job.packed))


@dataclass(eq=False)
class Lane:
    owner: Subscriber
    name: str
    batches: list[Batch] = field(default_factory=list)
    is_open: bool = False  # the last batch takes more events
    total: int = 0  # sequence number of the last event
    hold: int = 0
    untold: set[int] = field(default_factory=set)  # dropped, and the subscriber does not know
    idle_since: int = 0
    job: Job | None = None


@dataclass(eq=False)
class Subscriber:
    name: str
    max: int = 0
    timeout: int = 0
    concurrency: int = 0
    patterns: list[str] = field(default_factory=list)
    excepted: set[str] = field(default_factory=set)
    topics: set[str] = field(default_factory=set)
    state: str = "active"
    pulls: bool = False
    secret: str = ""
    previous: str = ""
    previous_until: int = 0
    health: int = 100
    failures: int = 0
    sent: int = 0
    lanes: dict[str, Lane] = field(default_factory=dict)
    waiting: list[Job] = field(default_factory=list)
    drops: list[tuple[str, int, int, str, int]] = field(default_factory=list)

    def catches(self, topic: str) -> bool:
        globs = (p for p in self.patterns if "*" in p)
        return topic not in self.excepted and any(fnmatch.fnmatchcase(topic, p) for p in globs)

    def slots(self) -> int:
        return self.concurrency if self.state == "active" else 0

    def active(self) -> int:
        return sum(bool(lane.job and lane.job.state in "ip") for lane in self.lanes.values())

    def secrets(self, now: int) -> tuple[str, ...]:
        """Those that a delivery is signed with."""
        old = self.previous if self.previous_until > now else ""
        return (self.secret, old) if old else (self.secret,)

    def queued(self) -> int:
        return sum(len(b.events) for lane in self.lanes.values() for b in lane.batches)


@dataclass(frozen=True)
class Event:
    fragment: bytes
    url: str
    facet: str | None = None
    target: str | None = None
    id: str | None = None


class Model:
    def __init__(self, max_lanes: int) -> None:
        self.max_lanes = max_lanes
        self.subscribers: dict[str, Subscriber] = {}
        self.topics: dict[str, int] = {}  # name -> events accepted
        self.ids: dict[tuple[str, str, str], bytes] = {}
        self.queues = {"main": Queue(), "aux": Queue()}
        self.fences = 0
        # What the export will drain.
        self.dropped: list[list[object]] = []
        self.published: Counter[tuple[int, str, str]] = Counter()

    # Subscriptions

    def create_topic(self, topic: str) -> None:
        if topic not in self.topics:
            self.topics[topic] = 0
            for subscriber in self.subscribers.values():
                if subscriber.catches(topic):
                    subscriber.topics.add(topic)

    def subscribe(self, name, patterns, max, timeout, concurrency, pulls=False) -> None:
        new = self.subscribers.get(name) or Subscriber(name)
        for topic in [p for p in patterns if "*" not in p]:
            self.create_topic(topic)
        new.max, new.timeout, new.concurrency = max, timeout, concurrency
        new.patterns, new.excepted, new.pulls = patterns, set(), pulls
        new.topics = {t for t in self.topics if t in patterns or new.catches(t)}
        self.subscribers[name] = new
        if new.state == "disabled":
            new.state = "active"
        self.admit(new)

    def set_state(self, name: str, state: str) -> bool:
        subscriber = self.subscribers.get(name)
        if subscriber:
            subscriber.state = state
            self.admit(subscriber)
        return subscriber is not None

    def set_secret(self, name: str, secret: str, now: int) -> bool:
        owner = self.subscribers.get(name)
        if owner and owner.secret != secret:
            owner.previous, owner.previous_until = owner.secret, now + SECRET_OVERLAP_MS
            owner.secret = secret
        return owner is not None

    def leave(self, name: str, topic: str) -> bool:
        subscriber = self.subscribers.get(name)
        if not subscriber or topic not in subscriber.topics:
            return False
        subscriber.topics.remove(topic)
        subscriber.excepted.add(topic)
        return True

    def unsubscribe(self, name: str) -> bool:
        gone = self.subscribers.pop(name, None)
        for lane in gone.lanes.values() if gone else ():
            self.forget(lane)
        return gone is not None

    def delete_topic(self, topic: str) -> bool:
        for subscriber in self.subscribers.values():
            subscriber.topics.discard(topic)
        return self.topics.pop(topic, None) is not None

    def audit(self, now: int) -> None:
        for subscriber in self.subscribers.values():
            for lane in list(subscriber.lanes.values()):
                if not lane.batches and lane.idle_since + IDLE_LANE_MS <= now:
                    del subscriber.lanes[lane.name]

    # Events

    def publish(
        self, topic: str, events: list[Event], key: str, body: bytes, now: int
    ) -> tuple[int, int]:
        """Returns how many were stored, and how many came before."""
        if key and (topic, "r", key) in self.ids:
            if self.ids[topic, "r", key] != body:
                raise Refused("KeyReused")
            return 0, len(events)
        fresh, seen = [], set()
        for event in events:
            if event.id and ((topic, "e", event.id) in self.ids or event.id in seen):
                continue
            seen.add(event.id)
            fresh.append(event)
        plan = self.plan(topic, fresh)
        for lane, added in plan:
            self.append(lane, added, now)
        if key:
            self.ids[topic, "r", key] = body
        self.ids |= {(topic, "e", event.id): b"1" for event in fresh if event.id}
        self.topics[topic] += len(fresh)
        if fresh:
            minute = now // 60_000
            self.published[minute, topic, "events"] += len(fresh)
            self.published[minute, topic, "bytes"] += sum(len(event.fragment) for event in fresh)
            self.published[minute, topic, "fanout"] += sum(len(added) for _, added in plan)
        return len(fresh), len(events) - len(fresh)

    def plan(self, topic: str, events: Iterable[Event]) -> list[tuple[Lane, list[bytes]]]:
        plan: dict[tuple[str, str], tuple[Lane, list[bytes]]] = {}
        for event in events:
            for name, owner in self.subscribers.items():
                if topic in owner.topics and event.target in (None, name):
                    lane = lane_of(event.url, event.facet, owner.concurrency)
                    known = owner.lanes.get(lane) or Lane(owner, lane)
                    plan.setdefault((name, lane), (known, []))[1].append(event.fragment)
        for owner in self.subscribers.values():
            lanes = {lane for name, lane in plan if name == owner.name} - owner.lanes.keys()
            if lanes and len(owner.lanes) + len(lanes) > self.max_lanes:
                raise Refused("TooMany")
        return list(plan.values())

    def append(self, lane: Lane, events: list[bytes], now: int) -> None:
        owner, had, was_open = lane.owner, len(lane.batches), lane.is_open
        owner.lanes[lane.name] = lane
        for event in events:
            if not lane.is_open or len(lane.batches[-1].events) >= owner.max:
                lane.batches.append(Batch(now, lane.total + 1))
            lane.batches[-1].events.append(event)
            lane.total += 1
            lane.is_open = len(lane.batches[-1].events) < owner.max
        oldest_is_open = lane.is_open and len(lane.batches) == 1
        if not had:
            packed = deliver(owner.name, lane.name).dump()
            lane.job = Job(packed, lane, due=now + (owner.timeout if oldest_is_open else 0))
            self.queues["main"].jobs[packed] = lane.job
        elif had == 1 and was_open and not oldest_is_open and not lane.hold:
            assert lane.job
            lane.job.due = min(lane.job.due, now)

    def drop(self, lane: Lane, most: int, reason: str, now: int) -> tuple[int, int]:
        job = lane.job
        from_ = 1 if job and job.state == "p" else 0
        gone = lane.batches[from_ : from_ + most]
        if not gone:
            return 0, 0
        if gone[-1] is lane.batches[-1]:
            lane.is_open = False
        del lane.batches[from_ : from_ + most]
        for first, last in ranges(gone):
            lane.owner.drops.append((lane.name, first, last, reason, now))
            lane.untold |= set(range(first, last + 1))
        for b in gone:
            last = b.first + len(b.events) - 1
            row = [len(b.events), b.first, last, b.created, now, reason]
            self.dropped.append([lane.owner.name, lane.name, *row])
        if not lane.batches:
            self.forget(lane)
            lane.hold, lane.idle_since = 0, now
            self.admit_if(job, "i")
        return len(gone), sum(len(batch.events) for batch in gone)

    # Jobs

    def push(self, packed: bytes, run_at: int | None) -> bool:
        queue = self.queues["aux"]
        if packed in queue.jobs:
            return False
        job = queue.jobs[packed] = Job(packed, None, "s", run_at or 0)
        if run_at is None:
            self.to_instant(queue, job)
        return True

    def take(self, name, worker, lease_id, lease_ms, most, repeated, now) -> list[Job]:
        queue = self.queues[name]
        for job in queue.ordered("s", "due", now):
            self.make_due(queue, job)
        mine = [j for j in queue.ordered("p", "until", 2**53) if j.holder == (worker, lease_id)]
        taken = mine if repeated else []
        while len(taken) < most and queue.instant:
            job = queue.instant.pop(0)
            if job.lane and (job.lane.owner.state != "active" or job.lane.owner.pulls):
                self.make_due(queue, job)
                continue
            self.lease(job, now + lease_ms, (worker, lease_id))
            taken.append(job)
        for job in taken:
            self.tell(job)
        return taken

    def lease(self, job: Job, until: int, holder: tuple[str, str]) -> None:
        self.fences += 1
        job.state, job.until, job.fence, job.holder = "p", until, str(self.fences), holder
        if job.lane:
            job.lane.hold = 0
            job.lane.is_open &= len(job.lane.batches) > 1

    @staticmethod
    def tell(job: Job) -> Job:
        if job.lane:
            job.told = frozenset(job.lane.untold)
        return job

    def pull(self, name, lease_id, lease_ms, repeated, now) -> str | Job:
        owner = self.subscribers.get(name)
        if not owner:
            return "gone"
        who = f"pull/{name}"
        held = self.queues["main"].ordered("p", "until", 2**53) if repeated else []
        for job in held:
            if job.holder[0] == who and job.holder[1].split("/")[0] == lease_id:
                job.until, job.holder = now + lease_ms, (who, pull_lease(job, lease_id, now))
                return self.tell(job)
        if owner.pulls and owner.waiting and owner.active() < owner.slots():
            job = owner.waiting.pop(0)
            self.lease(job, now + lease_ms, (who, pull_lease(job, lease_id, now)))
            return self.tell(job)
        return "none" if owner.pulls else "pushed"

    def ack(self, name: str, job: Job, points: int, now: int) -> None:
        lane = job.lane
        if not lane:
            del self.queues[name].jobs[job.packed]
            return
        gone = lane.batches.pop(0)
        lane.owner.sent += len(gone.events)
        lane.untold -= job.told
        lane.owner.health = min(100, lane.owner.health + points)
        lane.owner.failures = 0
        job.reclaims = 0
        if not lane.batches:
            self.forget(lane)
            lane.idle_since = now
        elif lane.is_open and len(lane.batches) == 1:
            job.state = "s"
            job.due = max(now, lane.batches[0].created + lane.owner.timeout)
        if lane.batches and (job.state != "s" or job.due == now):
            lane.owner.waiting.append(job)
            job.state = "w"
        self.admit(lane.owner)

    def nack(self, job: Job, delay: int, points: int, attempted: bool, now: int) -> None:
        job.state, job.due, job.reclaims = "s", now + delay, 0
        if job.lane:
            job.lane.hold = job.due if delay else 0
            if attempted:
                job.lane.batches[0].attempts += 1
                job.lane.owner.health = max(0, job.lane.owner.health - points)
                job.lane.owner.failures += 1
            self.admit(job.lane.owner)

    def scrub(self, name: str, most: int, limit: int, now: int) -> tuple[int, int]:
        queue = self.queues[name]
        expired = queue.ordered("p", "until", now)[:most]
        for job in reversed(expired):
            if job.lane and job.holder[0].startswith("pull/"):
                owner = job.lane.owner
                job.lane.batches[0].attempts += 1
                owner.health = max(0, owner.health - DAMAGE)
                owner.failures += 1
                job.state = "w"
                owner.waiting.insert(0, job)
                self.admit(owner)
                continue
            job.reclaims += 1
            if limit and job.reclaims >= limit:
                job.state, job.reclaims = "q", 0
                if job.lane:
                    self.admit(job.lane.owner)
            else:
                job.state = "i"
                queue.instant.insert(0, job)
        quarantined = sum(job.state == "q" for job in expired)
        return len(expired) - quarantined, quarantined

    def release(self, name: str, packed: bytes, now: int) -> bool:
        job = self.queues[name].jobs.get(packed)
        if not job or job.state != "q":
            return False
        job.state, job.due = "s", now
        return True

    def make_due(self, queue: Queue, job: Job) -> None:
        if not job.lane:
            self.to_instant(queue, job)
            return
        job.state = "w"
        job.lane.owner.waiting.append(job)
        self.admit(job.lane.owner)

    def admit(self, owner: Subscriber) -> None:
        slots = 0 if owner.pulls else owner.slots()
        while owner.waiting and owner.active() < slots:
            self.to_instant(self.queues["main"], owner.waiting.pop(0))

    def admit_if(self, job: Job | None, was: str) -> None:
        if job and job.lane and job.state == was:
            self.admit(job.lane.owner)

    def forget(self, lane: Lane) -> None:
        """The lane is empty, or its subscriber gone: its job goes, wherever it is."""
        job, lane.job = lane.job, None
        if job:
            queue = self.queues["main"]
            del queue.jobs[job.packed]
            queue.instant = [other for other in queue.instant if other is not job]
            lane.owner.waiting = [other for other in lane.owner.waiting if other is not job]

    @staticmethod
    def to_instant(queue: Queue, job: Job) -> None:
        job.state = "i"
        queue.instant.append(job)


def pull_lease(job: Job, lease_id: str, now: int) -> str:
    assert job.lane
    body = b"[" + b",".join(job.lane.batches[0].events) + b"]"
    return f"{lease_id}/{now}/{len(body)}"


def ranges(batches: list[Batch]) -> list[tuple[int, int]]:
    """Sequence numbers, neighbours joined."""
    found: list[tuple[int, int]] = []
    for batch in batches:
        last = batch.first + len(batch.events) - 1
        if found and found[-1][1] + 1 == batch.first:
            found[-1] = (found[-1][0], last)
        else:
            found.append((batch.first, last))
    return found

"""The scripts on a real Redis against a model in plain Python, in random order.

Every step is followed by a look at the whole database. The machine owns the clock: scripts get the
time passed in, so a lease expires when the machine says so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import HealthCheck, Phase
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from routemaster.bus import assemble
from routemaster.domain.event import Accepted, Events
from routemaster.errors import InvalidInput, KeyReused, Stale, StoreUnavailable, TooMany
from routemaster.store.events import EventStore, Stored, uid
from routemaster.store.subscribers import SECRET_OVERLAP_MS
from routemaster.store.table import Client
from tests.busses import subscription
from tests.lua.dump import digest, dump
from tests.lua.invariants import expected, observed, problems
from tests.lua.model import Event, Job, Model, Refused

NAMES = ("s", "s:1", "t")
TOPICS = ("a", "ab", "b")
LEASE_MS = 100
# For so many steps Redis has no memory left.
FULL_STEPS = 4
# Few enough that facets run into it.
MAX_MINUTES = 1_000_000
MAX_LANES = 4
ERRORS = {"KeyReused": KeyReused, "TooMany": TooMany}
STATES = {"pause": "paused", "resume": "active", "disable": "disabled"}
ADMINISTRATION = [*STATES, "resume", "resume", "leave", "claim", "delete", "remove"]
# More for a night: STATE_MACHINE_EXAMPLES=5000 pytest -m faults tests/lua
MANY = int(os.environ.get("STATE_MACHINE_EXAMPLES", "100"))

# Who only wants to know whether there is a bug (tests/faults/mutants.py) needs no short example.
PHASES = [Phase.generate] if "HYPOTHESIS_NO_SHRINK" in os.environ else list(Phase)

names, topics = st.sampled_from(NAMES), st.sampled_from(TOPICS)
# A target or a facet seldom, or nothing would ever fill a batch.
events = st.builds(
    Event,
    fragment=st.just(b""),
    url=st.sampled_from(["https://a/1", "https://a/2", "https://a/3"]),
    facet=st.sampled_from([None, None, None, "x", "é|ÿ"]),
    target=st.sampled_from([None, None, None, None, "s"]),
    id=st.sampled_from([None, None, None, "1", "2"]),
)
pick = st.integers(0, 1000)


@dataclass(frozen=True)
class Held:
    """A lease as its worker remembers it, live or not."""

    queue: str
    job: bytes
    fence: str
    bid: str


class Machine(RuleBasedStateMachine):
    def __init__(self, server, bus) -> None:
        super().__init__()
        self.server, self.bus = server, bus
        self.client = server.client()
        server.reset()
        self.store = EventStore(bus.link, bus.keys, MAX_LANES, MAX_MINUTES)
        self.queues = {"main": bus.main, "aux": bus.aux}
        self.model = Model(MAX_LANES)
        self.now = 1_000_000
        self.number = 0
        self.full_for = 0
        self.held: list[Held] = []
        self.takes: list[tuple[str, str, str]] = []

    def teardown(self) -> None:
        self.client.close()

    # Who gets what

    @initialize(concurrency=st.integers(1, 2), size=st.integers(1, 4))
    def begin(self, concurrency, size) -> None:
        self.subscribe("s", ["a"], size, 50, concurrency)
        self.subscribe("t", ["a*"], 3, 0, 1)
        self.publish_to_lanes(3, None)

    @rule(
        name=names,
        patterns=st.lists(st.sampled_from([*TOPICS, "a*"]), min_size=1, max_size=2, unique=True),
        size=st.integers(1, 4),
        timeout=st.sampled_from([0, 50, 1000]),
        concurrency=st.integers(1, 3),
        pulls=st.booleans(),
    )
    def subscribe(self, name, patterns, size, timeout, concurrency, pulls=False) -> None:
        fields = {"callback": None, "uuid": None} if pulls else {}
        fields |= {"max": size, "timeout": timeout, "concurrency": concurrency}
        wanted = subscription(*patterns, **fields)
        table = self.bus.directory.fresh()
        if self.full_for:
            self.refused(lambda: self.bus.subscribers.set(table, name, wanted, self.now))
            return
        self.bus.subscribers.set(table, name, wanted, self.now)
        self.model.subscribe(name, patterns, size, timeout, concurrency, pulls)
        owner = self.model.subscribers[name]
        # Made up by the store at the first subscription, and left alone by the next.
        owner.secret = owner.secret or self.bus.subscribers.secret(name) or ""
        with pytest.raises(Stale):
            self.bus.subscribers.set(table, name, wanted, self.now)

    # One rule of each kind: Hypothesis gives every rule the same share, and most should be work.
    @rule(what=st.sampled_from(ADMINISTRATION), name=names, topic=topics)
    def administer(self, what, name, topic) -> None:
        table = self.bus.directory.fresh()
        if what in STATES:
            self.set_state(name, STATES[what])
        elif what == "remove":
            self.unsubscribe(name)
        elif what == "leave":
            assert self.bus.subscribers.leave(table, name, topic) == self.model.leave(name, topic)
        elif what == "delete":
            assert self.bus.topics.remove(table, topic) == self.model.delete_topic(topic)
        elif what == "claim" and not self.full_for:
            self.bus.topics.claim(table, topic, "publisher", self.now)
            self.model.create_topic(topic)

    def set_state(self, name, state) -> None:
        done = self.bus.subscribers.set_state(name, state, self.now)
        assert done == self.model.set_state(name, state)

    @rule(name=names, state=st.sampled_from(["paused", "disabled"]), anew=st.booleans())
    def be_away(self, name, state, anew) -> None:
        """What comes due meanwhile waits, and is let in afterwards."""
        self.set_state(name, state)
        self.take_when_due(3)
        if anew:
            self.subscribe(name, ["a"], 2, 50, 1)
        else:
            self.set_state(name, "active")

    @rule(
        name=names,
        number=st.integers(0, 1),
        ms=st.sampled_from([0, 0, SECRET_OVERLAP_MS - 1, SECRET_OVERLAP_MS]),
    )
    def rotate(self, name, number, ms) -> None:
        done = self.bus.subscribers.set_secret(name, f"secret{number}", self.now)
        assert done == self.model.set_secret(name, f"secret{number}", self.now)
        self.now += ms
        self.take("main", "w1", 3)

    def unsubscribe(self, name) -> None:
        assert self.bus.subscribers.remove(name, uid()) == self.model.unsubscribe(name)

    @rule(name=names, concurrency=st.integers(1, 2))
    def come_back(self, name, concurrency) -> None:
        """Nothing of the old subscription may show in the new one."""
        self.unsubscribe(name)
        self.subscribe(name, ["a"], 2, 50, concurrency)

    # Events

    @rule(which=pick, count=st.integers(1, 5))
    def publish_plainly(self, which, count) -> None:
        self.publish(self.a_topic(which), [Event(b"", "https://a/1")] * count, "", b"")

    @rule(count=st.integers(1, 5), facet=st.sampled_from([None, "x", "y"]))
    def publish_to_lanes(self, count, facet) -> None:
        urls = [f"https://a/{number}" for number in range(count)]
        self.publish("a", [Event(b"", url, facet) for url in urls], "", b"")

    @rule(
        topic=topics,
        added=st.lists(events, min_size=1, max_size=9),
        key=st.sampled_from(["", "", "", "k"]),
        body=st.sampled_from([b"1", b"2"]),
    )
    def publish(self, topic, added, key, body) -> None:
        table = self.bus.directory.fresh()
        if topic not in self.model.topics:
            assert topic not in table.topics
            return
        # A target in the midst of a bulk must follow the topic; that is the store's own check.
        follows = {n for n, s in self.model.subscribers.items() if topic in s.topics}
        added = [self.numbered(event) for event in added]
        if {event.target for event in added} - {None} - follows:
            self.refused(lambda: self.send(table, topic, added, key, body), InvalidInput)
            return
        if self.full_for:
            self.refused(lambda: self.send(table, topic, added, key, body))
            return
        try:
            answer = self.model.publish(topic, added, key, body, self.now)
        except Refused as refused:
            kind = ERRORS[str(refused)]
            self.refused(lambda: self.send(table, topic, added, key, body), kind)
            return
        assert self.send(table, topic, added, key, body) == Stored(*answer)

    @precondition(lambda self: self.model.topics and not self.full_for)
    @rule(which=pick, key=st.sampled_from(["", "k"]))
    def publish_by_an_old_table(self, which, key) -> None:
        topic = self.a_topic(which)
        table = self.bus.directory.fresh()
        self.bus.tokens.add(uid(), Client("c", "c--1", "api", self.now))
        event = self.numbered(Event(b"", "https://a/1"))
        self.refused(lambda: self.send(table, topic, [event], key, b"1"), Stale)

    @precondition(lambda self: self.lanes())
    @rule(which=pick, most=st.integers(0, 3))
    def drop(self, which, most) -> None:
        lane = self.lanes()[which % len(self.lanes())]
        answer = self.model.drop(lane, most, "memory", self.now)
        assert self.bus.lanes.drop(lane.owner.name, lane.name, most, "memory", self.now) == answer

    # Jobs

    @rule(number=st.integers(0, 2), wait=st.sampled_from([None, 0, 70]))
    def push(self, number, wait) -> None:
        run_at = None if wait is None else self.now + wait
        pushed = self.bus.aux.push(b"job %d" % number, "" if run_at is None else run_at)
        assert pushed == self.model.push(b"job %d" % number, run_at)

    @rule(
        queue=st.sampled_from(["main", "main", "aux"]),
        worker=st.sampled_from(["w1", "w2"]),
        most=st.integers(0, 3),
    )
    def take(self, queue, worker, most) -> None:
        self.takes.append((queue, worker, f"lease{len(self.takes)}"))
        self.take_as(self.takes[-1], most, repeated=False)

    @rule(most=st.integers(1, 3))
    def take_when_due(self, most) -> None:
        due = self.next_due("main")
        self.now = max(self.now, due or 0)
        self.take("main", "w1", most)

    @precondition(lambda self: self.takes)
    @rule(which=pick, most=st.integers(0, 3))
    def take_again(self, which, most) -> None:
        self.take_as(self.takes[-1 - which % min(3, len(self.takes))], most, repeated=True)

    @rule(
        name=names,
        number=st.integers(0, 2),
        repeated=st.booleans(),
        waited=st.booleans(),
        anew=st.booleans(),
    )
    def pull(self, name, number, repeated, waited, anew) -> None:
        if anew:
            self.subscribe(name, ["a"], 2, 50, 2, pulls=True)
        if waited:
            self.take_when_due(0)
        lease_id = f"pull{number}"
        found = self.model.pull(name, lease_id, LEASE_MS, repeated, self.now)
        pulled = self.bus.pulls.take(name, lease_id, LEASE_MS, repeated=repeated, now_ms=self.now)
        if isinstance(found, str):
            assert (pulled.how.value, pulled.lease) == (found, None)
            return
        lease = pulled.lease
        assert found.lane and lease
        assert (lease.job, lease.fence) == (found.packed, found.fence)
        assert pulled.until_ms == found.until
        self.same_batch(lease, found.lane)
        assert lease.receiver.secrets == found.lane.owner.secrets(self.now)
        assert numbers(lease.dropped) == found.told
        self.held.append(Held("main", lease.job, lease.fence, lease.bid))
        held = self.bus.pulls.held(name, lease.bid)
        assert held and (held.job, held.fence) == (lease.job, lease.fence)
        assert (held.taken_ms, held.events) == (self.now, len(found.lane.batches[0].events))

    @precondition(lambda self: self.live())
    @rule(which=pick, points=st.sampled_from([0, 1, 30]))
    def ack(self, which, points) -> None:
        held, job = self.live()[which % len(self.live())]
        queue = self.queues[held.queue]
        assert queue.ack(held.job, held.fence, held.bid, health=points, now_ms=self.now)
        self.model.ack(held.queue, job, points, self.now)

    @precondition(lambda self: self.live())
    @rule(
        which=pick,
        delay=st.sampled_from([0, 30, 500]),
        points=st.sampled_from([0, 2, 60]),
        attempted=st.booleans(),
    )
    def nack(self, which, delay, points, attempted) -> None:
        held, job = self.live()[which % len(self.live())]
        done = self.queues[held.queue].nack(
            held.job, held.fence, delay, damage=points, attempted=attempted, now_ms=self.now
        )
        assert done
        self.model.nack(job, delay, points, attempted, self.now)

    @precondition(lambda self: self.live())
    @rule(which=pick)
    def renew(self, which) -> None:
        held, job = self.live()[which % len(self.live())]
        assert self.queues[held.queue].renew(held.job, held.fence, LEASE_MS, self.now)
        job.until = self.now + LEASE_MS

    @precondition(lambda self: self.stale())
    @rule(which=pick)
    def a_stale_worker_changes_nothing(self, which) -> None:
        held = self.stale()[which % len(self.stale())]
        queue = self.queues[held.queue]
        before = digest(self.client)
        assert not queue.ack(held.job, held.fence, held.bid, health=1, now_ms=self.now)
        assert not queue.nack(held.job, held.fence, 10, damage=2, now_ms=self.now)
        assert not queue.renew(held.job, held.fence, LEASE_MS, self.now)
        assert digest(self.client) == before

    @rule(queue=st.sampled_from(["main", "main", "aux"]), most=pick, limit=st.integers(0, 2))
    def scrub(self, queue, most, limit) -> None:
        answer = self.model.scrub(queue, most % 5, limit, self.now)
        assert self.queues[queue].scrub(most % 5, limit, self.now) == answer

    @rule(queue=st.sampled_from(["main", "main", "aux"]), which=pick)
    def release(self, queue, which) -> None:
        jobs = sorted(self.model.queues[queue].jobs.values(), key=lambda job: job.state != "q")
        packed = jobs[which % min(2, len(jobs))].packed if jobs else b"nobody's"
        released = self.model.release(queue, packed, self.now)
        assert self.queues[queue].release(packed, self.now) == released

    @rule(limit=st.integers(0, 2))
    def workers_die(self, limit) -> None:
        self.now += LEASE_MS
        self.scrub("main", 4, limit)

    # The world

    @rule(ms=st.sampled_from([1, 30, 50, 100, 1000, 1000, 25 * 3600 * 1000]))
    def time_passes(self, ms) -> None:
        self.now += ms

    @rule(what=st.sampled_from(["full", "full", "forgetful", "swept"]), most=st.integers(0, 2))
    def something_happens(self, what, most) -> None:
        if what == "forgetful":
            self.client.script_flush()
        elif what == "swept":
            self.bus.lanes.sweep(most)
        else:
            self.full_for = FULL_STEPS
            self.client.config_set("maxmemory", "1")

    @invariant()
    def the_database_is_in_order(self) -> None:
        # First, because an audit repairs: what it had found to repair it has to admit to.
        assert self.audits() == []
        self.model.audit(self.now)
        stored = dump(self.client)
        assert problems(stored, self.bus.keys) == []
        assert observed(stored, self.bus.keys) == expected(self.model)
        if self.full_for:
            self.full_for -= 1
            self.client.config_set("maxmemory", "1" if self.full_for else "0")

    # How

    def audits(self) -> list[object]:
        lanes = [found for name in NAMES for found in self.bus.lanes.audit(name, self.now)]
        return lanes + [f for queue in self.queues.values() for f in queue.audit(now_ms=self.now)]

    def send(self, table, topic, added, key, body) -> Stored:
        accepted = [Accepted(e.fragment, e.url, e.facet, e.target, e.id) for e in added]
        events = Events.of(accepted)
        return self.store.publish(table, table.topics[topic], events, key, body, self.now)

    def refused(self, act, error=StoreUnavailable) -> None:
        before = digest(self.client)
        with pytest.raises(error) as caught:
            act()
        assert digest(self.client) == before
        if isinstance(caught.value, StoreUnavailable):
            assert caught.value.reason == "full"

    def take_as(self, who: tuple[str, str, str], most: int, repeated: bool) -> None:
        queue, worker, lease_id = who
        jobs = self.model.take(queue, worker, lease_id, LEASE_MS, most, repeated, self.now)
        assert repeated or all(j.lane.owner.state == "active" for j in jobs if j.lane)
        taken = self.queues[queue].take(
            worker, lease_id, LEASE_MS, most, repeated=repeated, now_ms=self.now
        )
        assert [(lease.job, lease.fence) for lease in taken.leases] == [
            (job.packed, job.fence) for job in jobs
        ]
        assert (taken.now_ms, taken.next_due_ms) == (self.now, self.next_due(queue))
        for lease, job in zip(taken.leases, jobs, strict=True):
            self.held.append(Held(queue, lease.job, lease.fence, lease.bid))
            if job.lane:
                self.same_batch(lease, job.lane)
                assert lease.receiver.secrets == job.lane.owner.secrets(self.now)
                assert numbers(lease.dropped) == job.told

    def a_topic(self, which: int) -> str:
        return sorted(self.model.topics or TOPICS)[which % max(1, len(self.model.topics))]

    def next_due(self, queue) -> int | None:
        if self.model.queues[queue].instant:
            return self.now
        return min((job.due for job in self.model.queues[queue].in_state("s")), default=None)

    @staticmethod
    def same_batch(lease, lane) -> None:
        oldest = lane.batches[0]
        assert lease.batch is not None
        assert list(lease.batch.events) == oldest.events
        assert lease.batch.first_seq == oldest.first
        assert lease.batch.attempts == oldest.attempts
        oldest.bid = oldest.bid or lease.bid
        assert lease.bid == oldest.bid

    def numbered(self, event: Event) -> Event:
        self.number += 1
        return Event(b"%d" % self.number, event.url, event.facet, event.target, event.id)

    def lanes(self):
        return [lane for s in self.model.subscribers.values() for lane in s.lanes.values()]

    def job_of(self, held: Held) -> Job | None:
        job = self.model.queues[held.queue].jobs.get(held.job)
        return job if job and job.state == "p" and job.fence == held.fence else None

    def live(self) -> list[tuple[Held, Job]]:
        found = [(held, self.job_of(held)) for held in self.held]
        return [(held, job) for held, job in found if job]

    def stale(self) -> list[Held]:
        return [held for held in self.held if not self.job_of(held)]


def numbers(ranges) -> set[int]:
    return {number for first, last in ranges for number in range(first, last + 1)}


def run(server, config, examples: int, steps: int) -> None:
    bus = assemble(config)
    run_state_machine_as_test(
        partial(Machine, server, bus),  # type: ignore[arg-type] # any factory will do
        settings=hypothesis_settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=PHASES,
        ),
    )
    bus.link.close()


@pytest.mark.timeout(300)
def test_the_scripts_agree_with_the_model(redis_server, settings):
    run(redis_server, settings, examples=100, steps=40)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_the_scripts_agree_with_the_model_for_longer(redis_server, settings):
    run(redis_server, settings, examples=MANY, steps=100)

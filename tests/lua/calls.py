"""One working call of every script, on a small bus that has something of everything.

The calls are caught on their way out of the store classes, so that a test can bend a key or an
argument and send them itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from routemaster.bus import Bus, assemble
from routemaster.domain.attempt import Attempt
from routemaster.domain.event import Accepted, Events
from routemaster.domain.job import Job, deliver
from routemaster.store import scripts
from routemaster.store.counters import CounterStore
from routemaster.store.events import EventStore
from routemaster.store.exports import Claim, ExportStore
from routemaster.store.jobs import JobQueue, Limits
from routemaster.store.lanes import LaneStore
from routemaster.store.link import Arg
from routemaster.store.live import LiveStore
from routemaster.store.operations import Operations
from routemaster.store.pulls import PullStore
from routemaster.store.scripts import Script, Scripts
from routemaster.store.series import Entry, Flow, SeriesStore
from routemaster.store.sessions import MINUTE_MS, TRIES_MS, SessionStore
from routemaster.store.subscribers import SubscriberStore
from routemaster.store.table import Client
from routemaster.store.tokens import TokenStore
from routemaster.store.topics import TopicStore
from routemaster.store.workers import WorkerStore
from tests.busses import follow, subscription

NAMES = [field.name for field in fields(Scripts)]
NOW = 2_000_000
CLIENT = Client("c", "c--1", "api", NOW)
HEADER_LINE = re.compile(r"^-- (KEYS|ARGV)\[(\d+)\+?\]\s+(\w+)\s+(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Param:
    """A line of a script's header."""

    where: str
    number: int
    kind: str
    text: str


@dataclass
class Call:
    script: Script
    keys: list[str]
    args: list[Arg]


class Caught(Exception):
    def __init__(self, call: Call) -> None:
        self.call = call


class CatchingLink:
    def run(self, script, keys, args):
        raise Caught(Call(script, list(keys), list(args)))

    def run_call(self, call):
        self.run(call.script, call.keys, call.args)


def params(script: Script, where: str) -> list[Param]:
    found = [
        Param(w, int(n), kind, text) for w, n, kind, text in HEADER_LINE.findall(script.source)
    ]
    return [param for param in found if param.where == where]


class World:
    """Subscriber s has a leased lane with three batches and one lane waiting, t a lane scheduled,
    u is gone and left its batches in the trash; `aux` has a leased job."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        bus.link.call("FLUSHALL")
        for name in "stu":
            follow(bus, name, "a", "b*", max=2, timeout=50)
        bus.topics.claim(bus.directory.fresh(), "a", "publisher", NOW)
        self.table = bus.directory.fresh()
        self.publish(1, None, 5)
        self.publish(6, "x", 2)
        bus.subscribers.remove("u", "uid")
        self.table = bus.directory.fresh()
        self.lease = bus.main.take("w", "l1", 100, 1, now_ms=NOW).leases[0]
        bus.lanes.drop("t", "0", 1, "memory", NOW)
        bus.aux.push(b"job")
        self.aux_lease = bus.aux.take("w", "l2", 100, 1, now_ms=NOW).leases[0]
        bus.aux.push(b"later", NOW + 10)
        bus.tokens.add("token", CLIENT)
        self.table = bus.directory.fresh()

    def publish(self, first: int, facet: str | None, count: int) -> None:
        events = accepted(range(first, first + count), facet)
        self.bus.events.publish(self.table, self.table.topics["a"], events, now_ms=NOW)

    def call_of(self, name: str) -> Call:
        """The call of that script; whatever it needs to have work to do is done first."""
        catching: Any = CatchingLink()
        before, act = ROWS[name]
        before(self)
        try:
            act(self, catching)
        except Caught as caught:
            assert caught.call.script == getattr(scripts.load(), name.partition(":")[0])
            return caught.call
        raise AssertionError(f"{name}: no script was called")

    def sample(self, text: str) -> str:
        """A key of the family that a header line names."""
        samples = {
            "{queue}": "main", "{name}": "s", "{subscriber}": "s", "{topic}:": "a:r:k",
            "{topic}": "a", "{lane}": "s|0", "{bid}": self.lease.bid, "{uid}": "uid1",
        }  # fmt: skip
        if text == "topic:{name}":
            return self.bus.keys.topic("a")
        for mark, value in samples.items():
            text = text.replace(mark, value)
        return self.bus.keys.root + text


def accepted(numbers, facet: str | None = None, ids: bool = False) -> Events:
    return Events.of(
        [
            Accepted(b"%d" % n, f"https://a/{n}", facet, None, f"id{n}" if ids else None)
            for n in numbers
        ]
    )


def break_gauge(world: World) -> None:
    world.bus.link.call("HSET", world.bus.keys.event_gauges, "s", 77)
    world.bus.link.call("HDEL", world.bus.keys.index("main"), deliver("s", "0").dump())
    world.bus.link.call("HDEL", world.bus.keys.leases("main"), deliver("s", "0").dump())


def lose_job(world: World) -> None:
    world.bus.link.call("ZREM", world.bus.keys.pending("main"), world.lease.job)


def fill_instant(world: World) -> None:
    """The rest of what is due: t's first lane stands in line, its second waits."""
    world.bus.main.take("w", "l3", 100, 0, now_ms=NOW + 60)


def nothing(world: World) -> None:
    pass


# How each script is called: what is done first, and the call itself.


def publish(w: World, link) -> None:
    store = EventStore(link, w.bus.keys, 100, 100)
    events = accepted(range(20, 25), "x", ids=True)
    store.publish(w.table, w.table.topics["a"], events, "k", b"body", NOW)


def main(w: World, link) -> JobQueue:
    return JobQueue(link, w.bus.keys, "main", Limits(history=2, stream=2))


def attempt(w: World, outcome: str) -> Attempt:
    return Attempt(
        "0", w.lease.bid, 1, 2, 30, NOW, NOW, NOW + 5, outcome, 500, "http_500", "w", 1, b"oops"
    )


def take(w: World, link) -> None:
    main(w, link).take("w", "l3", 100, 1, now_ms=NOW)


def promote(w: World, link) -> None:
    main(w, link).take("w", "l3", 100, 0, now_ms=NOW + 60)


def take_again(w: World, link) -> None:
    main(w, link).take("w", "l1", 100, 2, repeated=True, now_ms=NOW)


def ack(w: World, link) -> None:
    main(w, link).ack(
        w.lease.job,
        w.lease.fence,
        w.lease.bid,
        health=1,
        attempt=attempt(w, "delivered"),
        now_ms=NOW,
    )


def nack(w: World, link) -> None:
    main(w, link).nack(
        w.lease.job, w.lease.fence, 10, damage=2, attempt=attempt(w, "failed"), now_ms=NOW
    )


def renew(w: World, link) -> None:
    main(w, link).renew(w.lease.job, w.lease.fence, 500, NOW)


def lanes(w: World, link) -> LaneStore:
    return LaneStore(link, w.bus.keys, Limits(history=2, stream=2))


def hasten(w: World, link) -> None:
    job = next(iter(w.bus.main.snapshot().scheduled))
    Operations(link, w.bus.keys).hasten(*map(str, Job.load(job).args))


def subscribers(w: World, link) -> SubscriberStore:
    return SubscriberStore(link, w.bus.keys)


def topics(w: World, link) -> TopicStore:
    return TopicStore(link, w.bus.keys)


def tokens(w: World, link) -> TokenStore:
    return TokenStore(link, w.bus.keys)


def subscribe(w: World, link) -> None:
    subscribers(w, link).set(w.table, "s", subscription("c", "bb", max=3), NOW)


def pause(world: World) -> None:
    """s has both its lanes waiting, and no slot."""
    world.bus.subscribers.set_state("s", "paused", NOW)
    world.bus.main.ack(world.lease.job, world.lease.fence, world.lease.bid, now_ms=NOW)


def set_aside(world: World) -> None:
    world.bus.main.scrub(100, 1, NOW + 1000)


def one_in_time(world: World) -> None:
    world.publish(30, "y", 1)


def beat(w: World, link) -> None:
    LiveStore(link, w.bus.keys).beat(now_ms=NOW)


def live(world: World) -> None:
    world.bus.live.beat(now_ms=NOW)


def pulling(world: World) -> None:
    """t pulls from now on; one of its lanes waits for that."""
    follow(world.bus, "t", "a", max=2, timeout=50, callback=None, uuid=None)
    # What stood in line for a worker goes back.
    assert not world.bus.main.take("w", "l3", 100, 9, now_ms=NOW + 60).leases


def pulled(world: World) -> None:
    pulling(world)
    assert world.bus.pulls.take("t", "l4", 100, now_ms=NOW).lease


def pull(w: World, link) -> None:
    pulls = PullStore(link, w.bus.keys, w.bus.main)
    pulls.take("t", "l4", 100, repeated=True, now_ms=NOW + 1)


def series(w: World, link, minute: int = 60_000_000, names: tuple[str, ...] = ("", "s")) -> None:
    entries = [Entry(name, Flow(minute, 2, 3, 4, 5, 6), (7, 8)) for name in names]
    SeriesStore(link, w.bus.keys).append(minute, entries)


def have_series(world: World) -> None:
    for minute in (59_999_990, 59_999_991):
        series(world, world.bus.link, minute, ("", "s", "t"))


def sessions(w: World, link) -> SessionStore:
    return SessionStore(link, w.bus.keys)


def sign_in(world: World) -> None:
    sessions(world, world.bus.link).open("id", "token", NOW)


MINUTE_OVER = f"{NOW + 120_000:015}"


def exports(w: World, link) -> ExportStore:
    return ExportStore(link, w.bus.keys)


def claim_of(world: World) -> Claim:
    [row] = world.bus.exports.oldest("drops", 10)
    return Claim(row.label, row.label)


def claim_drops(world: World) -> None:
    world.bus.exports.claim("drops", claim_of(world))


def cut_minutes(world: World) -> None:
    world.bus.exports.cut_publishes(now_ms=int(MINUTE_OVER))


Row = tuple[Callable[[World], None], Callable[[World, Any], object]]
ROWS: dict[str, Row] = {
    "publish": (nothing, publish),
    "pull_take": (pulling, pull),
    "pull_take: repeated": (pulled, pull),
    "queue_push": (nothing, lambda w, link: JobQueue(link, w.bus.keys, "aux").push(b"new", NOW)),
    "queue_take": (fill_instant, take),
    "queue_take: promotes": (one_in_time, promote),
    "queue_take: repeated": (fill_instant, take_again),
    "queue_renew": (nothing, renew),
    "queue_ack": (nothing, ack),
    "queue_nack": (nothing, nack),
    "queue_scrub": (nothing, lambda w, link: main(w, link).scrub(100, 1, NOW + 1000)),
    "queue_scrub: pulled": (pulled, lambda w, link: main(w, link).scrub(100, 1, NOW + 1000)),
    "queue_audit": (lose_job, lambda w, link: main(w, link).audit(now_ms=NOW)),
    "queue_release": (set_aside, lambda w, link: main(w, link).release(w.lease.job, NOW)),
    "publish: live": (live, publish),
    "live_beat": (nothing, beat),
    "lane_drop": (nothing, lambda w, link: lanes(w, link).drop("s", "0", 9, "age", NOW)),
    "lane_drop: all": (fill_instant, lambda w, link: lanes(w, link).drop("t", "0", 9, "age", NOW)),
    "lane_hasten": (one_in_time, hasten),
    "batches_sweep": (nothing, lambda w, link: lanes(w, link).sweep(3)),
    "subscriber_set": (nothing, subscribe),
    "subscriber_leave": (nothing, lambda w, link: subscribers(w, link).leave(w.table, "s", "a")),
    "subscriber_state": (
        nothing,
        lambda w, link: subscribers(w, link).set_state("s", "paused", NOW),
    ),
    "subscriber_state: admits": (
        pause,
        lambda w, link: subscribers(w, link).set_state("s", "active", NOW),
    ),
    "subscriber_secret": (nothing, lambda w, link: subscribers(w, link).set_secret("s", "x", NOW)),
    "subscriber_remove": (nothing, lambda w, link: subscribers(w, link).remove("s", "uid2")),
    "subscriber_audit": (break_gauge, lambda w, link: lanes(w, link).audit("s", NOW)),
    "topic_claim": (nothing, lambda w, link: topics(w, link).claim(w.table, "bb", "p", NOW)),
    "topic_remove": (nothing, lambda w, link: topics(w, link).remove(w.table, "a")),
    "token_add": (nothing, lambda w, link: tokens(w, link).add("new", CLIENT)),
    "token_remove": (nothing, lambda w, link: tokens(w, link).remove(next(iter(w.table.clients)))),
    "counters_read": (nothing, lambda w, link: CounterStore(link, w.bus.keys).read()),
    "series_append": (have_series, series),
    "session_open": (sign_in, lambda w, link: sessions(w, link).open("id2", "token", NOW)),
    "session_seen": (sign_in, lambda w, link: sessions(w, link).seen("id", NOW + MINUTE_MS)),
    "sign_in_try": (nothing, lambda w, link: sessions(w, link).try_sign_in("1", NOW + TRIES_MS)),
    "counters_snapshot": (
        nothing,
        lambda w, link: CounterStore(link, w.bus.keys).snapshot(now_ms=NOW),
    ),
    "export_claim": (nothing, lambda w, link: exports(w, link).claim("drops", claim_of(w))),
    "export_done": (claim_drops, lambda w, link: exports(w, link).done("drops", claim_of(w))),
    "export_done: minutes": (
        cut_minutes,
        lambda w, link: exports(w, link).done("publishes", Claim(MINUTE_OVER, MINUTE_OVER)),
    ),
    "publishes_cut": (
        nothing,
        lambda w, link: exports(w, link).cut_publishes("", 0, 9, now_ms=int(MINUTE_OVER)),
    ),
    "worker_beat": (nothing, lambda w, link: WorkerStore(link, w.bus.keys).beat("w", NOW)),
}


def world(settings) -> World:
    return World(assemble(settings))

"""Each script at the sizes where unpack() and Lua's stack would give way, and with nothing at all.

A row makes something of `size`, runs one script over it, and says what must be left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from routemaster.bus import Bus, assemble
from routemaster.domain.event import Events
from routemaster.store import scripts
from routemaster.store.channels import Channels
from routemaster.store.events import EventStore
from routemaster.store.exports import Claim
from routemaster.store.link import Arg
from routemaster.store.live import told
from routemaster.store.packing import for_lua
from routemaster.store.scripts import Scripts
from routemaster.store.series import Entry, Flow
from routemaster.store.table import Client
from tests.busses import follow
from tests.integration.processes import eventually
from tests.lua.calls import NOW, accepted
from tests.lua.dump import dump
from tests.lua.invariants import problems

SIZES = [0, 1, 999, 1000, 1001, pytest.param(20_000, marks=pytest.mark.slow)]
EVENTS_AT_ONCE = 5000
PIPELINE = 5000
Row = Callable[[Bus, int], None]


def send(bus: Bus, topic: str, count: int, facet: str | None = None) -> None:
    table = bus.directory.fresh()
    for first in range(0, count, EVENTS_AT_ONCE):
        numbers = range(first, min(first + EVENTS_AT_ONCE, count))
        bus.events.publish(table, table.topics[topic], accepted(numbers, facet), now_ms=NOW)


def send_facets(bus: Bus, topic: str, count: int) -> None:
    """One event to each of `count` lanes."""
    store = EventStore(bus.link, bus.keys, 100_000)
    table = bus.directory.fresh()
    events = [e for n in range(count) for e in accepted([n], f"facet{n}")]
    for first in range(0, count, EVENTS_AT_ONCE):
        part = Events.of(events[first : first + EVENTS_AT_ONCE])
        store.publish(table, table.topics[topic], part, now_ms=NOW)


def many_subscribers(bus: Bus, count: int) -> None:
    """Straight into the tables: subscribing 20,000 times is not what is tested here."""
    k = bus.keys
    follow(bus, "first", "a")
    names = [f"s{n}" for n in range(count)]
    fields_ = ("max_events", 10, "timeout", 50, "concurrency", 1, "state", "active", "sent", 0)
    commands: list[tuple[str | int, ...]] = []
    for name in names:
        commands += [
            ("HSET", k.subscriber(name), *fields_, "health_points", 100),
            ("SADD", k.subscribers, name), ("SADD", k.followers("a"), name),
            ("SADD", k.followed(name), "a"),
        ]  # fmt: skip
    for start in range(0, len(commands), PIPELINE):
        bus.link.many(commands[start : start + PIPELINE])
    bus.tokens.add("t", Client("c", "c--1", "api", NOW))
    bus.link.call("DEL", k.changes)  # nobody's copy is new enough to reload only what changed


def many_topics(bus: Bus, count: int) -> list[str]:
    return [letters(number) for number in range(count)]


def letters(number: int) -> str:
    return "t_" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


def raw_subscribe(bus: Bus, name: str, topics: list[str]) -> None:
    """With more topics than a subscription may name: patterns can catch any number."""
    k = bus.keys
    table = bus.directory.fresh()
    where = [
        k.routes, k.changes, k.topics, k.subscribers, k.subscriber(name), k.followed(name),
        k.index("main"), k.instant("main"), k.active, k.topic_prefix, k.followers_prefix,
        k.followed_prefix, k.waiting_prefix, k.subscriber_prefix,
    ]  # fmt: skip
    settings = ["max_events", "10", "timeout", "50", "concurrency", "1"]
    new = [[topic, []] for topic in topics if topic not in table.topics]
    args: list[Arg] = [
        str(table.version), name, for_lua(settings),
        for_lua(["state", "active", "health_points", "100", "sent", "0"]),
        for_lua(topics), for_lua(new), NOW, k.wake_channel,
    ]  # fmt: skip
    assert bus.link.run(scripts.load().subscriber_set, where, args) == 1


def queued(bus: Bus, name: str) -> int:
    return int(bus.link.call("HGET", bus.keys.event_gauges, name) or 0)


def publish_events(bus: Bus, size: int) -> None:
    follow(bus, "s", "a", max=7)
    follow(bus, "t", "a", max=10_000)
    table = bus.directory.fresh()
    if size:
        bus.events.publish(table, table.topics["a"], accepted(range(size), ids=True), now_ms=NOW)
        again = accepted(range(size), ids=True)
        assert bus.events.publish(table, table.topics["a"], again).duplicates == size
    assert queued(bus, "s") == queued(bus, "t") == size


def publish_to_subscribers(bus: Bus, size: int) -> None:
    many_subscribers(bus, size)
    table = bus.directory.fresh()
    for number in (1, 2):
        bus.events.publish(table, table.topics["a"], accepted([number]), now_ms=NOW)
    assert len(bus.main.snapshot().index) == size + 1
    assert bus.link.call("HVALS", bus.keys.event_gauges) == [b"2"] * (size + 1)


def take(bus: Bus, size: int) -> None:
    """All due at once: promoted a thousand at a time, leased as many as are asked for."""
    follow(bus, "s", "a", max=1, concurrency=100)
    send_facets(bus, "a", size)
    for _ in range(size // 1000 + 1):
        bus.main.take("w", "l", 1000, 0, now_ms=NOW)
    assert bus.main.snapshot().scheduled == {}
    assert len(bus.main.take("w", "l", 1000, size + 1, now_ms=NOW).leases) == min(size, 100)


def take_aux(bus: Bus, size: int) -> None:
    push(bus, size)
    assert len(bus.aux.take("w", "l", 1000, size, now_ms=NOW).leases) == min(size, 1000)
    for _ in range(size // 1000):
        bus.aux.take("w", "l", 1000, size, now_ms=NOW)
    assert len(bus.aux.take("w", "l", 10, 0, repeated=True, now_ms=NOW).leases) == size


def take_batch(bus: Bus, size: int) -> None:
    follow(bus, "s", "a", max=10_000, timeout=0)
    send(bus, "a", size)
    lease = next(iter(bus.main.take("w", "l", 1000, 1, now_ms=NOW).leases), None)
    assert len(lease.batch.events if lease and lease.batch else ()) == min(size, 10_000)
    if lease:
        assert bus.main.renew(lease.job, lease.fence, 50, NOW)
        assert bus.main.nack(lease.job, lease.fence, 0, now_ms=NOW)
        again = bus.main.take("w", "l", 1000, 1, now_ms=NOW).leases[0]
        assert bus.main.ack(again.job, again.fence, again.bid, now_ms=NOW)
    assert queued(bus, "s") == max(0, size - 10_000)


def pull(bus: Bus, size: int) -> None:
    """Of so many lanes that wait."""
    follow(bus, "p", "a", max=1, concurrency=2, callback=None, uuid=None)
    send_facets(bus, "a", size)
    for _ in range(size // 1000 + 1):
        bus.pulls.promote(NOW)
    assert len(bus.link.call("LRANGE", bus.keys.waiting("p"), 0, -1)) == size
    taken = [bus.pulls.take("p", f"l{n}", 1000, now_ms=NOW).lease for n in range(3)]
    assert [bool(lease) for lease in taken] == [size > 0, size > 1, False]
    again = bus.pulls.take("p", "l0", 1000, repeated=True, now_ms=NOW).lease
    assert again == taken[0]
    assert bus.main.scrub(100, 0, NOW + 1000) == (min(size, 2), 0)


def pull_batch(bus: Bus, size: int) -> None:
    follow(bus, "p", "a", max=10_000, timeout=0, callback=None, uuid=None)
    send(bus, "a", size)
    bus.pulls.promote(NOW)
    lease = bus.pulls.take("p", "l", 1000, now_ms=NOW).lease
    assert len(lease.batch.events if lease and lease.batch else ()) == min(size, 10_000)


def live(bus: Bus, size: int) -> None:
    follow(bus, "s", "a", max=10_000)
    assert bus.live.beat(now_ms=NOW) > NOW
    listening = Channels(bus.link)
    listening.listen_to({bus.live.channel("a")})
    eventually(lambda: bus.link.call("PUBSUB", "NUMSUB", bus.live.channel("a"))[1])
    send(bus, "a", size)
    heard: list[bytes] = []
    while len(heard) < size:
        heard += [e for one in listening.read() if (news := told(one.payload)) for e in news.events]
    assert heard == [b"%d" % n for n in range(size)]
    listening.close()


def push(bus: Bus, size: int) -> None:
    for number in range(size):
        bus.aux.push(b"job %d" % number, NOW)
    assert len(bus.aux.snapshot().scheduled) == size


def scrub(bus: Bus, size: int) -> None:
    take_aux(bus, size)
    assert bus.aux.scrub(size, 0, NOW + 5000) == (size, 0)
    assert len(bus.aux.snapshot().instant) == size


def audit(bus: Bus, size: int) -> None:
    follow(bus, "s", "a", max=1)
    send_facets(bus, "a", size)
    assert bus.main.audit(now_ms=NOW) == []
    assert bus.lanes.audit("s", NOW) == []
    bus.link.call("DEL", bus.keys.index("main"), bus.keys.scheduled("main"))
    assert len(bus.lanes.audit("s", NOW)) == size
    assert len(bus.main.snapshot().scheduled) == size


def drop(bus: Bus, size: int) -> None:
    follow(bus, "s", "a", max=1)
    send(bus, "a", max(size, 1))
    assert bus.lanes.drop("s", "0", size, "age", NOW) == (size, size)
    assert queued(bus, "s") == (0 if size else 1)


def unsubscribe_batches(bus: Bus, size: int) -> None:
    follow(bus, "s", "a", max=1)
    send(bus, "a", size)
    unsubscribe(bus, size)


def unsubscribe_lanes(bus: Bus, size: int) -> None:
    follow(bus, "s", "a", max=1)
    send_facets(bus, "a", size)
    unsubscribe(bus, size)


def unsubscribe(bus: Bus, size: int) -> None:
    k = bus.keys
    assert bus.subscribers.remove("s", "uid")
    sweeps = 0
    while bus.lanes.sweep(1000):
        sweeps += 1
    assert sweeps <= size // 1000
    assert bus.link.call("EXISTS", k.index("main"), k.scheduled("main"), k.trash) == 0


def topics_of_a_subscriber(bus: Bus, size: int) -> None:
    topics = many_topics(bus, size)
    raw_subscribe(bus, "s", topics)
    assert len(bus.directory.fresh().routes["s"].topics) == size
    if size:
        assert bus.subscribers.leave(bus.directory.fresh(), "s", topics[0])
    raw_subscribe(bus, "s", [])
    assert not bus.directory.fresh().routes["s"].topics
    raw_subscribe(bus, "s", topics)
    assert bus.subscribers.remove("s", "uid")
    table = bus.directory.fresh()
    assert not table.routes and len(table.topics) == size


def followers_of_a_topic(bus: Bus, size: int) -> None:
    many_subscribers(bus, size)
    assert len(bus.directory.fresh().topics["a"].routes) == size + 1
    assert bus.topics.remove(bus.directory.fresh(), "a")
    assert not any(route.topics for route in bus.directory.fresh().routes.values())


def catchers_of_a_topic(bus: Bus, size: int) -> None:
    many_subscribers(bus, size)
    k = bus.keys
    where = [k.routes, k.changes, k.topics, k.topic_prefix, k.followers_prefix, k.followed_prefix]
    names = [f"s{n}" for n in range(size)]
    args: list[Arg] = [str(bus.directory.fresh().version), "b", "p", for_lua(names), NOW]
    assert bus.link.run(scripts.load().topic_claim, where, args) == 1
    assert len(bus.directory.fresh().topics["b"].routes) == size


def pause_and_resume(bus: Bus, size: int) -> None:
    follow(bus, "s", "a", max=1, concurrency=100)
    send_facets(bus, "a", size)
    assert bus.subscribers.set_state("s", "paused", NOW)
    for _ in range(size // 1000 + 1):
        assert bus.main.take("w", "l", 1000, size + 1, now_ms=NOW).leases == []
    assert len(bus.link.call("LRANGE", bus.keys.waiting("s"), 0, -1)) == size
    assert bus.subscribers.set_state("s", "active", NOW)
    assert len(bus.main.snapshot().instant) == min(size, 100)


def hasten(bus: Bus, size: int) -> None:
    follow(bus, "s", "a", timeout=500_000)
    send_facets(bus, "a", size)
    lanes = [lane.name for lane in bus.lanes.holding_lanes("s")][:100]
    assert all(bus.operations.hasten("s", lane) == "s" for lane in lanes)
    due = list(bus.main.snapshot().scheduled.values())
    assert due.count(NOW + 500_000) == size - len(lanes)


def secrets(bus: Bus, size: int) -> None:
    follow(bus, "s", "a")
    made = bus.subscribers.secret("s")
    for number in range(min(size, 1001)):  # a call each
        assert bus.subscribers.set_secret("s", f"secret{number}", NOW)
    last = f"secret{min(size, 1001) - 1}" if size else made
    assert bus.subscribers.secret("s") == last


def tokens(bus: Bus, size: int) -> None:
    for number in range(min(size, 1001)):  # a call each; the store's own tests have 10,001
        assert bus.tokens.add(f"token{number}", Client("c", f"c--{number}", "api", NOW))
    for known in bus.directory.fresh().clients:
        assert bus.tokens.remove(known)
    assert not bus.directory.fresh().clients


def counters(bus: Bus, size: int) -> None:
    fields_ = [word for n in range(size) for word in (f"c{n}", 1)]
    for start in range(0, len(fields_), PIPELINE):
        bus.link.call("HSET", bus.keys.counters, *fields_[start : start + PIPELINE])
    assert len(bus.counters.read()) == size


def workers(bus: Bus, size: int) -> None:
    for number in range(min(size, 1001)):
        bus.workers.beat(f"w{number}", NOW)
    assert bus.link.call("HLEN", bus.keys.workers) == min(size, 1001)
    bus.workers.beat("last", NOW + 3_600_000)
    assert bus.link.call("HKEYS", bus.keys.workers) == [b"last"]


def release(bus: Bus, size: int) -> None:
    for number in range(min(size, 1001)):
        bus.aux.push(b"job%d" % number)
    bus.aux.take("w", "l", 100, size, now_ms=NOW)
    assert bus.aux.scrub(size, 1, NOW + 100) == (0, min(size, 1001))
    for one in bus.aux.quarantined():
        assert bus.aux.release(one.job, NOW)
    assert len(bus.aux.snapshot().scheduled) == min(size, 1001)


def series(bus: Bus, size: int) -> None:
    for minute in range(1, min(size, 1001) + 2):  # as many rows as there may be series
        names = [f"s{n}" for n in range(size if minute <= 2 else 0)]
        entries = [Entry(name, Flow(minute), (1,)) for name in ("", *names)]
        written = bus.series.append(minute, entries)
        assert written == (len(entries) if minute > 1 else 0)
        if minute == 2 and size:
            assert len(bus.series.read(["s0"], 10)["s0"]) == 1
    assert len(bus.series.read([""], 2000)[""]) == min(size, 1001)
    assert bus.series.names() == ({""} if size > 1 else {"", *[f"s{n}" for n in range(size)]})
    if size == 1:
        bus.series.append(9, [Entry("", Flow(), ())])


def sessions(bus: Bus, size: int) -> None:
    for number in range(min(size, 1001)):  # a call each
        bus.sessions.open(f"id{number}", "token", NOW + number)
        assert bus.sessions.seen(f"id{number}", NOW + number) == "token"
        assert bus.sessions.try_sign_in(str(number), NOW) == 0
    assert bus.link.call("HLEN", bus.keys.sessions) == min(size, 1000)
    assert bus.sessions.seen("id0", NOW + 1001) == ("token" if 0 < size <= 1000 else "")


def snapshot(bus: Bus, size: int) -> None:
    counters(bus, size)
    first = bus.counters.snapshot()
    assert len(first.values) == size and first.begins
    again = bus.counters.snapshot()
    assert (again.epoch, again.begins, again.values) == (first.epoch, False, first.values)


def drain(bus: Bus, size: int) -> None:
    for start in range(0, size, PIPELINE):
        numbers = range(start, min(size, start + PIPELINE))
        bus.link.many([("XADD", bus.keys.attempts, "*", "a", number) for number in numbers])
    rows = bus.exports.oldest("attempts", size + 1)
    assert [int(row.packed) for row in rows] == list(range(size))
    if rows:
        claim = Claim(rows[0].label, rows[-1].label)
        assert bus.exports.claim("attempts", claim) == claim
        assert bus.exports.claimed("attempts", claim) == rows
        assert bus.exports.done("attempts", claim)
    assert bus.link.call("XLEN", bus.keys.attempts) == 0


def minutes(bus: Bus, size: int) -> None:
    fields_ = [word for n in range(size) for word in (f"1|t{n}|", "1 2 3")]
    for start in range(0, len(fields_), PIPELINE):
        bus.link.call("HSET", bus.keys.publishes, *fields_[start : start + PIPELINE])
    found = 0
    while cut := bus.exports.cut_publishes(now_ms=NOW):
        claim, fields = cut
        found += len(fields)
        assert bus.exports.cut_publishes(now_ms=NOW) == cut
        assert bus.exports.done("publishes", claim)
    assert found == size
    assert bus.link.call("EXISTS", bus.keys.publishes, bus.keys.publishes_cut) == 0


ROWS: dict[Row, list[str]] = {
    publish_events: ["publish"],
    publish_to_subscribers: ["publish"],
    take: ["queue_take"],
    take_aux: ["queue_take"],
    take_batch: ["queue_take", "queue_renew", "queue_nack", "queue_ack"],
    pull: ["pull_take", "queue_scrub"],
    pull_batch: ["pull_take"],
    live: ["live_beat", "publish"],
    push: ["queue_push"],
    scrub: ["queue_scrub"],
    audit: ["queue_audit", "subscriber_audit"],
    drop: ["lane_drop"],
    hasten: ["lane_hasten"],
    release: ["queue_release", "queue_scrub"],
    unsubscribe_batches: ["subscriber_remove", "batches_sweep"],
    unsubscribe_lanes: ["subscriber_remove", "batches_sweep"],
    topics_of_a_subscriber: ["subscriber_set", "subscriber_leave", "subscriber_remove"],
    pause_and_resume: ["subscriber_state"],
    secrets: ["subscriber_secret"],
    followers_of_a_topic: ["topic_remove"],
    catchers_of_a_topic: ["topic_claim"],
    tokens: ["token_add", "token_remove"],
    counters: ["counters_read"],
    snapshot: ["counters_snapshot"],
    drain: ["export_claim", "export_done"],
    minutes: ["publishes_cut", "export_done"],
    workers: ["worker_beat"],
    series: ["series_append"],
    sessions: ["session_open", "session_seen", "sign_in_try"],
}


def test_every_script_has_its_sizes():
    covered = {name for row in ROWS.values() for name in row}
    assert covered == {field.name for field in fields(Scripts)}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_size(settings, redis_server, row, size):
    # Scripts of this size may take longer than a publisher would wait.
    bus = assemble(replace(settings, redis_timeout_s=10))
    row(bus, size)
    with redis_server.client() as client:
        assert problems(dump(client), bus.keys) == []

"""Redis does what it was asked and the answer is lost, at every point of every operation.

Nobody can know then whether it happened. It must have happened once or not at all, never half
and never twice; and with an id the publisher may simply ask again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from routemaster.bus import Bus, assemble
from routemaster.errors import NotFound, StoreUnavailable
from routemaster.pull import acknowledge, lease_id_of, refuse, take
from routemaster.store.jobs import Lease
from routemaster.subscribe import leave_topic, unsubscribe
from tests.busses import event, follow, give_token, publish
from tests.lua.dump import dump
from tests.lua.invariants import View, problems
from tests.proxy import Proxy

MOST_EXCHANGES = 20


@pytest.fixture
def proxy(redis_server):
    with Proxy(redis_server.port) as started:
        yield started


@pytest.fixture
def bus(settings, proxy):
    """Its routing table is as old as can be: then an operation has the most steps."""
    direct = assemble(settings)
    give_token(direct, "publisher")
    made = assemble(replace(settings, redis_url=proxy.url))
    yield made
    made.link.close()


def lose_each_reply(proxy: Proxy, bus: Bus, prepare: Callable[[], None], act: Callable[[], object]):
    """Yields after each loss, until an operation ends before the reply that would be lost."""
    for number in range(MOST_EXCHANGES):
        proxy.watch()
        bus.link.call("FLUSHALL")
        bus.link.call("SCRIPT", "FLUSH")
        prepare()
        proxy.lose_reply(number)
        try:
            act()
        except StoreUnavailable as problem:
            assert problem.reason == "down"
        if not proxy.has_lost:
            assert number > 0
            return
        proxy.watch()
        yield
    raise AssertionError("an operation of so many steps?")


def events_of(bus: Bus, redis_server) -> dict[str, list[int]]:
    """What each lane holds; and the database is in order."""
    with redis_server.client() as client:
        stored = dump(client)
    view = View(stored, bus.keys)
    found = {
        lane: [json.loads(e)["t"] for b in view.batches(lane) for e in b[5:]] for lane in view.lanes
    }
    # `problems` reads events as numbers.
    for lane in view.lanes:
        for batch in view.batches(lane):
            batch[5:] = [b"%d" % json.loads(e)["t"] for e in batch[5:]]
    assert problems(stored, bus.keys) == []
    return found


def one_puller(bus: Bus) -> None:
    give_token(bus, "publisher")
    follow(bus, "p", "a", max=2, timeout=0, callback=None, uuid=None)
    publish(bus, "publisher", "a", json.dumps([event(n) for n in range(3)]).encode())


def test_pulling_by_a_key_is_asked_again(bus, proxy, redis_server):
    lease_id = lease_id_of("k")
    for _ in lose_each_reply(
        proxy, bus, lambda: one_puller(bus), lambda: take(bus, "p", lease_id, 60_000, repeated=True)
    ):
        taken = take(bus, "p", lease_id, 60_000, repeated=True)
        assert taken and taken.lease and taken.lease.batch
        assert (taken.lease.batch.first_seq, taken.lease.batch.attempts) == (1, 0)
        assert len(bus.main.snapshot().pending) == 1
        assert events_of(bus, redis_server) == {"p|0": [0, 1, 2]}


def test_a_web_process_asks_again_for_what_it_took(bus, proxy):
    bus.link.call("FLUSHALL")
    one_puller(bus)
    bus.pulls.promote()
    bus.pulls.take("q", "l", 1)  # so that the script is there
    proxy.lose_reply(1)  # after the promotion's
    taken = take(bus, "p", "l", 60_000)
    assert proxy.has_lost
    assert taken and taken.lease and taken.lease.batch
    assert taken.lease.batch.first_seq == 1
    assert len(bus.main.snapshot().pending) == 1


@pytest.mark.parametrize(
    "act", [acknowledge, lambda bus, name, bid, fence: refuse(bus, name, bid, fence, 0)]
)
def test_what_becomes_of_a_pulled_batch_is_told_once(bus, proxy, redis_server, act):
    taken: list[str] = []

    def prepare() -> None:
        one_puller(bus)
        found = take(bus, "p", "l", 60_000)
        assert found and found.lease
        taken[:] = [found.lease.bid]

    for _ in lose_each_reply(proxy, bus, prepare, lambda: act(bus, "p", taken[0], "")):
        if act is acknowledge:
            acknowledge(bus, "p", taken[0], "")
            assert events_of(bus, redis_server) == {"p|0": [2]}
        else:
            assert events_of(bus, redis_server) == {"p|0": [0, 1, 2]}


def two_followers(bus: Bus) -> None:
    give_token(bus, "publisher")
    follow(bus, "s", "a", max=2)
    follow(bus, "t", "a", max=5)


@pytest.mark.parametrize("count", [1, 7])
def test_publish_without_an_id(bus, proxy, redis_server, count):
    body = json.dumps([event(n) for n in range(count)]).encode()
    whole = list(range(count))
    seen = []
    for _ in lose_each_reply(
        proxy, bus, lambda: two_followers(bus), lambda: publish(bus, "publisher", "a", body)
    ):
        stored = events_of(bus, redis_server)
        assert stored in ({}, {"s|0": whole, "t|0": whole})
        seen.append(stored)
    assert {} in seen and seen[-1] != {}


@pytest.mark.parametrize("count", [1, 7])
@pytest.mark.parametrize("by", ["event ids", "Idempotency-Key"])
def test_publish_with_an_id_is_asked_again(bus, proxy, redis_server, count, by):
    key = "k" if by == "Idempotency-Key" else ""
    ids = [{} if key else {"id": f"id{n}"} for n in range(count)]
    body = json.dumps([event(n, **ids[n]) for n in range(count)]).encode()
    whole = list(range(count))
    for _ in lose_each_reply(
        proxy, bus, lambda: two_followers(bus), lambda: publish(bus, "publisher", "a", body, key)
    ):
        answer = publish(bus, "publisher", "a", body, key)
        assert answer.events + answer.duplicates == count
        assert events_of(bus, redis_server) == {"s|0": whole, "t|0": whole}


def test_subscribe(bus, proxy, redis_server):
    for _ in lose_each_reply(
        proxy, bus, lambda: two_followers(bus), lambda: follow(bus, "new", "a", "b*", "c")
    ):
        events_of(bus, redis_server)
        table = bus.directory.fresh()
        new = table.routes.get("new")
        assert new is None or new.topics == {"a", "c"}
        assert [r.subscriber for r in table.topics["a"].routes] == (["new"] if new else []) + [
            "s",
            "t",
        ]
        assert ("c" in table.topics) == (new is not None)
        follow(bus, "new", "a", "b*", "c")
        assert bus.directory.fresh().routes["new"].topics == {"a", "c"}


def with_events(bus: Bus) -> None:
    two_followers(bus)
    publish(bus, "publisher", "a", json.dumps([event(n) for n in range(5)]).encode())


def gone_or_not_found(act: Callable[[], None]) -> None:
    try:
        act()
    except NotFound:
        pass


def test_unsubscribe(bus, proxy, redis_server):
    rest = {"t|0": [0, 1, 2, 3, 4]}
    for _ in lose_each_reply(proxy, bus, lambda: with_events(bus), lambda: unsubscribe(bus, "s")):
        assert events_of(bus, redis_server) in (rest, rest | {"s|0": [0, 1, 2, 3, 4]})
        gone_or_not_found(lambda: unsubscribe(bus, "s"))
        bus.lanes.sweep()  # what housekeeping does
        assert events_of(bus, redis_server) == rest
        follow(bus, "s", "a")
        assert events_of(bus, redis_server) == rest


def test_leave_topic(bus, proxy, redis_server):
    for _ in lose_each_reply(
        proxy, bus, lambda: with_events(bus), lambda: leave_topic(bus, "s", "a")
    ):
        gone_or_not_found(lambda: leave_topic(bus, "s", "a"))
        assert [r.subscriber for r in bus.directory.fresh().topics["a"].routes] == ["t"]
        assert set(events_of(bus, redis_server)) == {"s|0", "t|0"}


def test_take_is_asked_again(bus, proxy, redis_server):
    for _ in lose_each_reply(
        proxy, bus, lambda: with_events(bus), lambda: bus.main.take("w", "lease", 60_000, 2)
    ):
        again = bus.main.take("w", "lease", 60_000, 2, repeated=True)
        assert sorted(lease.batch.subscriber for lease in again.leases) == ["s", "t"]
        assert [lease.batch.first_seq for lease in again.leases] == [1, 1]
        events_of(bus, redis_server)


def test_ack_is_asked_again(bus, proxy, redis_server):
    held: dict[str, Lease] = {}

    def prepare() -> None:
        with_events(bus)
        leases = bus.main.take("w", "lease", 60_000, 2).leases
        held.update({lease.batch.subscriber: lease for lease in leases})

    def ack() -> bool:
        return bool(bus.main.ack(held["s"].job, held["s"].fence, held["s"].bid, health=1))

    outcomes = []
    for _ in lose_each_reply(proxy, bus, prepare, ack):
        outcomes.append(ack())
        assert events_of(bus, redis_server)["s|0"] == [2, 3, 4]
    # Lost before it ran (the script was not loaded yet), and lost after.
    assert True in outcomes and False in outcomes


def test_nack_is_asked_again(bus, proxy, redis_server):
    held: dict[str, Lease] = {}

    def prepare() -> None:
        with_events(bus)
        leases = bus.main.take("w", "lease", 60_000, 2).leases
        held.update({lease.batch.subscriber: lease for lease in leases})

    def nack() -> bool:
        return bool(bus.main.nack(held["s"].job, held["s"].fence, 0, damage=2))

    for _ in lose_each_reply(proxy, bus, prepare, nack):
        nack()
        assert bus.subscribers.summaries(["s"])[0].health_points == 98
        assert bus.main.take("w", "next", 60_000, 1).leases[0].batch.attempts == 1
        assert events_of(bus, redis_server)["s|0"] == [0, 1, 2, 3, 4]

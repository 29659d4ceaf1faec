from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routemaster.domain.job import Job
from routemaster.errors import StoreUnavailable
from routemaster.jobs import jobs
from routemaster.jobs.autodrop import REASON, Autodrop, quota, shares
from routemaster.metrics.memory import Memory, marks_of, measure
from routemaster.store.events import uid
from routemaster.store.jobs import Snapshot
from routemaster.store.lanes import Drop, Holder
from routemaster.worker.aux import AuxConsumer
from tests.busses import event, follow, give_token, publish
from tests.integration.processes import eventually

MIB = 1024**2
ROOM_BYTES = 8 * MIB
LONG = "x" * 900
FAR_MS = 4_000_000_000_000  # whatever waits to be full is due by then


@pytest.fixture
def bus(make_bus, settings):
    made = make_bus(replace(settings, redis_min_free_bytes=MIB))
    give_token(made, "pub")
    return made


@pytest.fixture
def limit(bus, redis_server):
    """limit() gives Redis a maximum: what it uses now, and a little room."""

    def set_maximum(room_bytes: int = ROOM_BYTES) -> int:
        with redis_server.client() as redis:
            most: int = measure(bus).used_bytes + room_bytes
            redis.config_set("maxmemory", most)
        return most

    return set_maximum


def send(bus, topic: str, count: int, **fields: object) -> None:
    events = [event(n, **fields) | {"url": f"https://pub.example/{LONG}"} for n in range(count)]
    publish(bus, "pub", topic, json.dumps(events).encode())


def fill(bus, topic: str, **fields: object) -> None:
    """Publishes until Redis refuses."""
    with pytest.raises(StoreUnavailable, match="store") as refused:
        for _ in range(1000):
            send(bus, topic, 200, **fields)
    assert refused.value.reason == "full"


def run(bus, is_over=lambda: False) -> None:
    Autodrop(bus).run(is_over)


def queued(bus) -> dict[str, int]:
    return {holder.name: holder.events for holder in bus.lanes.holders()}


def queued_after_a_run(bus) -> dict[str, int]:
    run(bus)
    return queued(bus)


def ranges(drops: list[Drop]) -> tuple[int, int]:
    """First and last of what was dropped, when it is without gaps."""
    for one, next_one in zip(drops, drops[1:], strict=False):
        assert next_one.first_seq == one.last_seq + 1
    return drops[0].first_seq, drops[-1].last_seq


def test_only_the_oldest_of_who_holds_most_goes(bus, limit):
    most = limit()
    follow(bus, "small", "rare", max=1)
    follow(bus, "dead", "busy", max=20)
    send(bus, "rare", 5)  # the oldest of all, and not touched
    fill(bus, "busy")
    before = queued(bus)

    run(bus)

    marks = marks_of(most, MIB)
    assert marks.low_bytes - most // 10 < measure(bus).used_bytes <= marks.low_bytes
    after = queued(bus)
    assert after["small"] == before["small"] == 5
    assert bus.lanes.drops("small") == []
    first, last = ranges(bus.lanes.drops("dead"))
    assert (first, last) == (1, before["dead"] - after["dead"])
    assert {drop.reason for drop in bus.lanes.drops("dead")} == {REASON}
    assert bus.counters.read()[f"events.dropped,reason={REASON},subscriber=dead"] == last
    assert bus.lanes.audit("dead") == bus.main.audit() == []
    send(bus, "busy", 200)
    heads = {
        lease.batch.subscriber: lease.batch.first_seq
        for lease in bus.main.take("w", uid(), 60_000, 10).leases
    }
    assert heads == {"small": 1, "dead": last + 1}


def test_a_full_redis_is_freed_through_its_own_queue(bus, limit):
    limit()
    follow(bus, "dead", "busy", max=20)
    fill(bus, "busy")
    assert bus.aux.push(Job("autodrop").dump())
    AuxConsumer(bus, "w", jobs(bus), threading.Event()).step()
    assert bus.aux.snapshot() == Snapshot()
    send(bus, "busy", 200)


def test_two_who_hold_the_same_give_the_same(bus, limit):
    limit()
    for name in ("one", "two"):
        follow(bus, name, "busy", max=20)
    fill(bus, "busy")
    run(bus)
    after = queued(bus)
    assert abs(after["one"] - after["two"]) <= 20
    assert bus.lanes.drops("one") and bus.lanes.drops("two")


def test_within_a_subscriber_the_longest_lane_gives(bus, limit):
    limit()
    follow(bus, "dead", "busy", max=20)
    send(bus, "busy", 40, facet="short")
    fill(bus, "busy", facet="long")
    run(bus)
    assert {drop.lane for drop in bus.lanes.drops("dead")} == {"f:long"}


def test_below_the_high_mark_nothing_goes(bus, limit):
    follow(bus, "dead", "busy")
    send(bus, "busy", 200)
    limit(3 * MIB // 2)  # above the low mark
    run(bus)
    assert queued(bus) == {"dead": 200}


def test_what_is_being_delivered_stays(bus, redis_server):
    follow(bus, "dead", "busy", max=10)
    follow(bus, "calm", "rare", max=10)
    send(bus, "rare", 10)
    send(bus, "busy", 50)
    [held] = [
        lease
        for lease in bus.main.take("w", uid(), 60_000, 10).leases
        if lease.batch.subscriber == "dead"
    ]
    with redis_server.client() as redis:
        redis.config_set("maxmemory", "1")  # nothing will ever be enough
    # So few bytes drown in what connections come and go with: a run may end for their sake.
    eventually(lambda: queued_after_a_run(bus)["dead"] == 10)
    with redis_server.client() as redis:
        redis.config_set("maxmemory", "0")
    assert queued(bus)["dead"] == 10
    assert ranges(bus.lanes.drops("dead")) == (11, 50)
    assert bus.main.ack(held.job, held.fence, held.bid)
    assert queued(bus).get("dead") is None


def test_who_has_nothing_to_give_is_passed_over(bus, limit):
    names = [f"slow{n}" for n in range(5)]
    for name in names:
        follow(bus, name, "large", max=1000)
    follow(bus, "dead", "busy", max=20)
    send(bus, "large", 800)
    assert len(bus.main.take("w", uid(), 60_000, 10, now_ms=FAR_MS).leases) == 5
    send(bus, "busy", 600)
    limit(0)
    run(bus)
    assert bus.lanes.drops("dead")
    assert [bus.lanes.drops(name) for name in names] == [[]] * 5


def test_what_nobody_waits_for_goes_first(bus, limit):
    most = limit()
    follow(bus, "dead", "busy", max=1)
    follow(bus, "gone", "busy", max=1)
    fill(bus, "busy")
    before = queued(bus)["dead"]
    bus.subscribers.remove("gone", uid())
    run(bus)
    assert queued(bus)["dead"] == before
    assert measure(bus).used_bytes < marks_of(most, MIB).high_bytes


def test_a_broken_lane_does_not_stop_the_others(bus, limit, redis_server, caplog):
    limit()
    follow(bus, "broken", "busy", max=20)
    follow(bus, "dead", "busy", max=20)
    fill(bus, "busy")
    with redis_server.client() as redis:
        redis.delete(bus.keys.lane_prefix + "broken|0")
        redis.config_set("maxmemory", "0")
        redis.set(bus.keys.lane_prefix + "broken|0", "not a hash")
    limit(0)
    run(bus)
    assert "cannot drop subscriber=broken lane='0'" in caplog.text
    assert bus.lanes.drops("broken") == []
    assert bus.lanes.drops("dead")


def test_it_ends_when_it_is_told_to(bus, limit):
    limit()
    follow(bus, "dead", "busy", max=20)
    fill(bus, "busy")
    asked = []

    def is_over() -> bool:
        asked.append(True)
        return len(asked) > 3

    run(bus, is_over)
    assert 0 < len(bus.lanes.drops("dead")) <= 3


def test_marks():
    assert marks_of(1000, 100) == marks_of(1000, 500)  # 500 would leave a low mark of nothing
    assert (marks_of(1000, 300).high_bytes, marks_of(1000, 300).low_bytes) == (700, 400)


@pytest.mark.parametrize(
    ("batches", "used", "low", "expected"),
    [
        (100, 1000, 990, 1),
        (100, 1000, 970, 3),
        (100, 1000, 500, 5),
        (100_000, 1000, 500, 1000),
        (1, 1000, 999, 1),
    ],
)
def test_a_step_is_what_is_needed_but_bounded(batches, used, low, expected):
    assert quota(batches, Memory(used, 2000, False), low) == expected


def test_among_equals_the_oldest_gives():
    lanes = [Holder("young", 1, 1, 300), Holder("old", 1, 1, 100), Holder("middle", 1, 1, 200)]
    assert shares(lanes, 2) == {"old": 1, "middle": 1}


holders = st.dictionaries(
    st.sampled_from("abcdef"), st.tuples(st.integers(0, 500), st.integers(1, 50)), min_size=1
)


@given(holders, st.integers(0, 200))
def test_nobody_gives_while_another_holds_more(found, batches):
    held = [Holder(name, events, count) for name, (events, count) in found.items()]
    chosen = shares(held, batches)
    assert sum(chosen.values()) == min(batches, sum(holder.batches for holder in held))
    assert all(chosen.get(holder.name, 0) <= holder.batches for holder in held)
    for giver in held:
        each = giver.events / giver.batches
        at_its_last_gift = giver.events - each * (chosen.get(giver.name, 0) - 1)
        for other in held:
            left = chosen.get(other.name, 0)
            if giver.name in chosen and left < other.batches:
                left_events = other.events - other.events / other.batches * left
                assert at_its_last_gift >= left_events - 1e-6

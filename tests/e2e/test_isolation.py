"""Lanes and subscribers do not stand in each other's way."""

from __future__ import annotations

import time
from collections import defaultdict

from routemaster.settings import Settings
from tests.e2e.receiver import Answer, in_turn
from tests.e2e.running import event, events
from tests.integration.processes import eventually

DEFAULTS = {"ROUTEMASTER_ROOT_KEY": "whatever-it-is"}


def test_a_failing_facet_does_not_hold_another(bus, receiver, topic):
    """Also with a concurrency of 1: a lane that backs off gives its slot away."""
    receiver.script = lambda delivery: Answer(500 if delivery.lane == "f:bad" else 200)
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=1)
    publisher.publish(topic, event(0, facet="bad"))
    receiver.wait_for_deliveries(1)
    publisher.publish(topic, *events(1, 20, facet="good"))
    receiver.wait_for(lambda: len(by_lane(receiver)["f:good"]) == 20)
    assert [d.times[0] for d in by_lane(receiver)["f:good"]] == list(range(1, 21))
    assert subscriber.subscription()["events"]["queued"] >= 1
    receiver.script = in_turn()
    eventually(lambda: subscriber.subscription()["events"]["queued"] == 0, receiver.summary)
    bad = by_lane(receiver)["f:bad"]
    assert [d.attempt for d in bad] == list(range(1, len(bad) + 1))
    assert len({d.bid for d in bad}) == 1


def test_facets_have_numbers_of_their_own(bus, receiver, topic):
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=2, concurrency=3)
    published = [event(n, facet=f"f{n % 3}") for n in range(30)]
    publisher.publish(topic, *published)
    receiver.wait_for_events(30)
    assert set(by_lane(receiver)) == {"f:f0", "f:f1", "f:f2"}
    for lane, made in by_lane(receiver).items():
        assert [t for d in made for t in d.times] == list(range(int(lane[-1]), 30, 3))
        assert [d.sequence for d in made] == [(n, n + 1) for n in range(1, 10, 2)]


def test_concurrency_keeps_the_order_of_each_url(bus, receiver, topic):
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=5, concurrency=4)
    published = [event(n, url=f"https://pub.example/{n % 20}") for n in range(400)]
    for first in range(0, 400, 100):
        publisher.publish(topic, *published[first : first + 100])
    receiver.wait_for_events(400)
    times, lanes = defaultdict(list), defaultdict(set)
    for delivery in receiver.deliveries:
        for each in delivery.events:
            times[each["url"]].append(each["t"])
            lanes[each["url"]].add(delivery.lane)
    for url, seen in times.items():
        assert seen == list(range(int(url.rpartition("/")[2]), 400, 20))
    assert all(len(of_url) == 1 for of_url in lanes.values())
    assert len(by_lane(receiver)) > 1


def test_a_hanging_subscriber_does_not_delay_another(bus, make_receiver, topic):
    """However many lanes it has, it holds no more slots than its concurrency."""
    stuck, well = make_receiver(), make_receiver()
    gate = stuck.gate()
    stuck.script = lambda delivery: Answer(gate=gate)
    publisher = bus.client()
    bus.client().subscribe(stuck, topic, concurrency=2, max=1)
    bus.client().subscribe(well, topic, concurrency=2, max=1)
    publisher.publish(topic, *(event(n, facet=f"f{n}") for n in range(50)))
    assert sorted(well.wait_for_events(50)) == list(range(50))
    assert len(stuck.wait_for_deliveries(2)) == 2
    gate.set()
    assert sorted(stuck.wait_for_events(50)) == list(range(50))


def test_more_hanging_subscribers_than_slots_delay_nobody(bus, make_receiver, topic):
    stuck, well = make_receiver(), make_receiver()
    gate = stuck.gate()
    stuck.script = lambda delivery: Answer(gate=gate)
    for _ in range(14):  # two workers have ten slots
        bus.client().subscribe(stuck, topic, max=1)
    publisher = bus.client()
    publisher.publish(topic, event(0))
    stuck.wait_for_deliveries(10)
    bus.client().subscribe(well, topic, max=1)
    before_s = time.monotonic()
    publisher.publish(topic, *events(1, 5))
    assert well.wait_for_events(5) == [1, 2, 3, 4, 5]
    # Long before the bus gives the others up, which would make room too.
    assert time.monotonic() - before_s < Settings.from_env(DEFAULTS).timeout_s / 2
    assert {delivery.attempt for delivery in stuck.wait_for_deliveries(14)} == {1}
    gate.set()


def by_lane(receiver):
    found = defaultdict(list)
    for delivery in receiver.deliveries:
        found[delivery.lane].append(delivery)
    return found

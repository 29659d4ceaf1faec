"""Lanes and subscribers do not stand in each other's way."""

from __future__ import annotations

import time
from collections import defaultdict
from types import SimpleNamespace

import pytest

from routemaster.settings import Settings
from tests.e2e.receiver import Answer, Receiver, in_turn
from tests.e2e.running import Client, event, events, unique
from tests.integration.processes import eventually
from tests.zoo import Visit, Zoo, answering

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


def test_a_facet_with_a_long_queue_delays_another_by_one_batch_at_most(bus, receiver, topic):
    gate = receiver.gate()
    receiver.script = in_turn(Answer(gate=gate))
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=100)
    for first in range(0, 10_000, 1000):
        publisher.publish(topic, *events(first, first + 999, facet="long"))
    receiver.wait_for_deliveries(1)
    publisher.publish(topic, event(1, facet="short"))
    gate.set()
    receiver.wait_for(lambda: by_lane(receiver)["f:short"])
    lanes = [delivery.lane for delivery in receiver.deliveries]
    # The one in flight when it came, and one more.
    assert lanes.index("f:short") <= 2
    receiver.wait_for(lambda: len(receiver.times) == 10_001)


def drip(visit: Visit) -> None:
    visit.drip(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, every_s=0.2)


SICK = [Visit.hang, drip, Visit.reset, answering("HTTP/1.1 500 No\nContent-Length: 0")]
SICK_EACH, HEALTHY, ROUNDS, PUBLISHES = 5, 20, 5, 30


@pytest.mark.slow
def test_the_sick_do_not_slow_the_healthy(bus, receiver):
    """Both are measured in turn, so that whatever else the machine does is in both; an isolation
    that does not hold costs seconds, in every round."""
    well, ill = unique("topic"), unique("topic")
    publisher, healthy = bus.client(), [bus.client() for _ in range(HEALTHY)]
    for client in healthy:
        client.subscribe(receiver, well, max=1)
    seen: list[tuple[float, float]] = []
    with Zoo() as zoo:
        sick = [(bus.client(), animal) for animal in SICK for _ in range(SICK_EACH)]
        for number, (client, animal) in enumerate(sick):
            callback = SimpleNamespace(url=zoo.keep(animal, f"/{number}"))
            client.subscribe(callback, ill, max=1)
        for _ in range(ROUNDS):
            alone_s = latency_p99_s(receiver, publisher, [well])
            for client, _ in sick:
                client.resume()
            together_s = latency_p99_s(receiver, publisher, [ill, well])
            for client, _ in sick:
                client.pause()
            seen.append((alone_s, together_s))
            if together_s <= 2 * alone_s:
                break
        assert len(zoo.requests) > len(sick)
        for client, _ in sick:
            client.unsubscribe()
    assert seen[-1][1] <= 2 * seen[-1][0], seen


def latency_p99_s(receiver: Receiver, publisher: Client, topics: list[str]) -> float:
    """From just before an event is published to its arrival, at each of the healthy."""
    before, began_s = len(receiver.deliveries), time.monotonic()
    for number in range(PUBLISHES):
        at_s = began_s + number / PUBLISHES  # whether or not the one before is answered
        time.sleep(max(0, at_s - time.monotonic()))  # the rate is what is measured
        for topic in topics:
            publisher.publish(topic, event(round(at_s * 1e6)))
    receiver.wait_for(lambda: len(receiver.times) == before + PUBLISHES * HEALTHY)
    delays_s = [d.arrived_s - d.times[0] / 1e6 for d in receiver.deliveries[before:]]
    return sorted(delays_s)[len(delays_s) * 99 // 100]


def by_lane(receiver):
    found = defaultdict(list)
    for delivery in receiver.deliveries:
        found[delivery.lane].append(delivery)
    return found

"""What is published arrives: whole, in batches, in order."""

from __future__ import annotations

import time

from tests.e2e.receiver import Answer, in_turn
from tests.e2e.running import HOUR_MS, event, events, unique

MANY = 5_000


def test_a_single_event(bus, receiver, topic):
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic)
    publisher.publish(topic, event(7))
    [delivery] = receiver.wait_for_deliveries(1)
    url = "https://pub.example/7"
    assert delivery.events == [{"topic": topic, "type": "update", "url": url, "t": 7}]
    assert delivery.headers["content-type"] == "application/json"
    assert delivery.user == f"uuid-of-{subscriber.name}:x"
    assert (delivery.lane, delivery.sequence, delivery.attempt) == ("0", (1, 1), 1)


def test_everything_arrives_as_it_was_published(bus, receiver, topic):
    sent: dict[str, object] = {
        "type": "create",
        "url": "https://pub.example/ünïcode/%2F",
        "timestamp": 1_234_567_890_123,
        "data": {"κλειδί": [1, 2.5, None, True, "\u2028\"'<>"], "n": 2**53},
        "facet": "Île-de-France / 75",
    }
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic)
    publisher.publish(topic, sent)
    [delivery] = receiver.wait_for_deliveries(1)
    sent["t"] = sent.pop("timestamp")
    assert delivery.events == [{"topic": topic, **sent}]


def test_each_subscriber_gets_its_topics(bus, make_receiver):
    one, other = unique("topic"), unique("topic")
    publisher = bus.client()
    both, only_other = make_receiver(), make_receiver()
    bus.client().subscribe(both, one, other)
    bus.client().subscribe(only_other, other)
    publisher.publish(one, event(1))
    publisher.publish(other, event(2))
    publisher.publish(one, event(3))
    publisher.publish(other, event(4))
    assert both.wait_for_events(4) == [1, 2, 3, 4]
    assert only_other.wait_for_events(2) == [2, 4]
    topics = [e["topic"] for delivery in both.deliveries for e in delivery.events]
    assert topics == [one, other, one, other]


def test_a_full_batch_goes_at_once(bus, receiver, topic):
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, timeout=HOUR_MS, max=3)
    publisher.publish(topic, event(1))
    publisher.publish(topic, event(2))
    publisher.publish(topic, event(3), event(4))
    [delivery] = receiver.wait_for_deliveries(1)
    assert delivery.times == [1, 2, 3]
    assert subscriber.subscription()["events"]["queued"] in (1, 4)  # acknowledged yet, or not


def test_a_partial_batch_goes_after_its_timeout(bus, receiver, topic):
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, timeout=400, max=100)
    began_s = time.monotonic()
    publisher.publish(topic, event(1), event(2))
    [delivery] = receiver.wait_for_deliveries(1)
    assert delivery.times == [1, 2]
    assert delivery.arrived_s - began_s >= 0.399


def test_thousands_arrive_in_order(bus, receiver, topic):
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, timeout=20, max=97)
    for first in range(1, MANY, 250):
        publisher.publish(topic, *events(first, first + 249))
    assert receiver.wait_for_events(MANY) == list(range(1, MANY + 1))
    firsts = [delivery.sequence[0] for delivery in receiver.deliveries]
    lasts = [delivery.sequence[1] for delivery in receiver.deliveries]
    assert firsts == [1, *(last + 1 for last in lasts[:-1])]
    assert lasts[-1] == MANY
    assert {delivery.attempt for delivery in receiver.deliveries} == {1}
    assert max(len(delivery.events) for delivery in receiver.deliveries) == 97


def test_a_failed_batch_is_sent_again_and_not_overtaken(bus, receiver, topic):
    receiver.script = in_turn(Answer(500), Answer(500))
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=1)
    publisher.publish(topic, *events(1, 3))
    made = receiver.wait_for_deliveries(5)
    assert [delivery.times for delivery in made] == [[1], [1], [1], [2], [3]]
    assert [delivery.attempt for delivery in made] == [1, 2, 3, 1, 1]
    assert len({delivery.bid for delivery in made[:3]}) == 1
    assert len({delivery.bid for delivery in made}) == 3


def test_queued_events_of_a_deleted_topic_arrive(bus, receiver, topic):
    kept = unique("topic")
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, kept, timeout=HOUR_MS, max=2)
    publisher.publish(topic, event(1))
    publisher.delete_topic(topic)
    assert subscriber.subscription()["topics"] == [kept]
    publisher.publish(kept, event(2))
    [delivery] = receiver.wait_for_deliveries(1)
    assert [e["topic"] for e in delivery.events] == [topic, kept]


def test_nothing_after_goodbye(bus, receiver, topic):
    gate = receiver.gate()
    receiver.script = in_turn(Answer(gate=gate))
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=1)
    publisher.publish(topic, *events(1, 5))
    receiver.wait_for_deliveries(1)  # in flight: it may end
    subscriber.unsubscribe()
    gate.set()
    publisher.publish(topic, event(6))
    subscriber.subscribe(receiver, topic, max=1)
    publisher.publish(topic, *events(7, 8))
    made = receiver.wait_for_deliveries(3)
    assert [delivery.times for delivery in made] == [[1], [7], [8]]
    assert [delivery.sequence for delivery in made] == [(1, 1), (1, 1), (2, 2)]

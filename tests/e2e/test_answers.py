"""What a subscriber can say besides yes and no."""

from __future__ import annotations

from tests.e2e.receiver import Answer, in_turn
from tests.e2e.running import events
from tests.integration.processes import eventually


def test_gone_disables_and_keeps_the_events(bus, receiver, topic):
    receiver.script = in_turn(Answer(410))
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=1)
    publisher.publish(topic, *events(1, 3))
    eventually(lambda: subscriber.subscription()["state"] == "disabled", receiver.summary)
    publisher.publish(topic, *events(4, 5))
    assert subscriber.subscription()["events"]["queued"] == 5
    # Another's events pass through the same workers meanwhile, and this one's do not.
    receiver.deliveries.clear()
    witness = bus.client()
    witness.subscribe(receiver, topic, max=1)
    publisher.publish(topic, *events(6, 9))
    assert receiver.wait_for_events(4) == [6, 7, 8, 9]
    assert {delivery.user for delivery in receiver.deliveries} == {f"uuid-of-{witness.name}:x"}


def test_asked_to_wait_it_waits_and_does_not_count(bus, receiver, topic):
    receiver.script = in_turn(Answer(429, {"Retry-After": "1"}))
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=1)
    publisher.publish(topic, *events(1, 2))
    first, second, third = receiver.wait_for_deliveries(3)
    assert [first.times, second.times, third.times] == [[1], [1], [2]]
    assert (first.attempt, second.attempt) == (1, 1)
    assert first.bid == second.bid
    assert second.arrived_s - first.arrived_s >= 0.999
    assert subscriber.subscription()["health_points"] == 100

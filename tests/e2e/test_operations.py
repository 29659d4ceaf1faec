"""What a subscriber can find out about its deliveries while real workers make them."""

from __future__ import annotations

from tests.e2e.receiver import Answer, in_turn
from tests.e2e.running import event, events
from tests.integration.processes import eventually


def test_a_delivery_tells_its_attempts(bus, receiver, topic):
    gate = receiver.gate()
    receiver.script = in_turn(Answer(500), Answer(200, gate=gate))
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic)
    publisher.publish(topic, event(1), event(2))
    bid = receiver.wait_for_deliveries(2)[0].bid
    running = subscriber.operation(bid)
    assert (running["status"], len(running["attempts"])) == ("RUNNING", 1)
    gate.set()
    eventually(lambda: subscriber.operation(bid)["status"] == "SUCCESS", receiver.summary)
    done = subscriber.operation(bid)
    assert (done["events"], done["first_seq"], done["last_seq"], done["lane"]) == (2, 1, 2, "0")
    failed, delivered = done["attempts"]
    assert (failed["attempt"], failed["outcome"], failed["status"]) == (1, "failed", 500)
    assert failed["error"] == "http_500"
    assert (delivered["attempt"], delivered["outcome"]) == (2, "delivered")
    assert (delivered["status"], delivered["error"]) == (200, None)
    assert failed["bytes"] == delivered["bytes"] > 0
    assert failed["started"] <= failed["finished"] <= delivered["started"]


def test_redeliver_ends_a_wait(bus, receiver, topic):
    receiver.script = in_turn(Answer(503, {"Retry-After": "3600"}))
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=1)
    publisher.publish(topic, *events(1, 3))
    eventually(lambda: outcomes(subscriber) == ["throttled"], receiver.summary)
    assert receiver.times == [1]
    [first] = [op for op in subscriber.operations() if op["attempts"]]
    assert first["status"] == "QUEUED"
    subscriber.redeliver(first["id"])
    # Those behind it were held by the same answer.
    assert receiver.wait_for_events(4) == [1, 1, 2, 3]
    eventually(lambda: subscriber.subscription()["events"]["queued"] == 0)
    assert [op["status"] for op in subscriber.operations()] == ["SUCCESS"] * 3


def outcomes(subscriber):
    return [row["outcome"] for op in subscriber.operations() for row in op["attempts"]]

"""Turns of a dispatcher, one by one, with whatever Redis may hold and lose."""

from __future__ import annotations

import pytest

from tests.e2e.receiver import Answer, in_turn
from tests.proxy import Proxy
from tests.worker.turns import (
    dispatching,
    follow,
    oldest_batch,
    publish_numbers,
    queued,
    step_until,
    through,
)  # fmt: skip


def test_a_batch_that_vanished_is_passed_over(bus, dispatcher, receiver):
    follow(bus, "s", receiver)
    publish_numbers(bus, 1, 2, 3)
    bus.link.call("DEL", oldest_batch(bus, "s|0"))
    step_until(dispatcher, lambda: receiver.times == [2, 3] and not bus.main.snapshot().index)


@pytest.mark.parametrize(
    "callback",
    ["no url", "http://[", "ftp://127.0.0.1/", "http://127.0.0.1:0/", "https://a\r\nb/",
     "http://127.0.0.1:1/é", "http://127.0.0.1:99999/", "file:///etc/passwd",
     b"http://\xff/"],
    ids=repr,
)  # fmt: skip
def test_a_callback_that_cannot_be_called_stops_nobody(bus, dispatcher, receiver, callback):
    follow(bus, "bad", receiver)
    follow(bus, "good", receiver)
    bus.link.call("HSET", bus.keys.subscriber("bad"), "callback", callback)
    publish_numbers(bus, 1, 2, 3)
    step_until(dispatcher, lambda: queued(bus, "good") == 0)
    step_until(dispatcher, lambda: int(bus.link.call("LINDEX", oldest_batch(bus, "bad|0"), 2)) > 1)
    assert {delivery.user for delivery in receiver.deliveries} == {"good:x"}
    assert queued(bus, "bad") == 3
    assert bus.subscribers.summaries(["bad"])[0].health_points < 100


def test_an_answer_that_redis_refuses_stops_nobody(bus, dispatcher, receiver):
    """Its lease runs out, and then the lane is looked at."""
    gate = receiver.gate()
    receiver.script = in_turn(Answer(gate=gate))
    follow(bus, "bad", receiver)
    follow(bus, "good", receiver, "b")
    publish_numbers(bus, 1)
    step_until(dispatcher, lambda: receiver.deliveries)
    bus.link.call("DEL", bus.keys.lane_prefix + "bad|0")
    bus.link.call("SET", bus.keys.lane_prefix + "bad|0", "not a hash")
    gate.set()
    step_until(dispatcher, lambda: dispatcher.in_flight == 0)
    publish_numbers(bus, 2, 3, topic="b")
    step_until(dispatcher, lambda: queued(bus, "good") == 0)
    assert receiver.times == [1, 2, 3]


def test_a_take_whose_reply_was_lost_is_asked_again(bus, settings, redis_server, receiver):
    follow(bus, "s", receiver)
    with Proxy(redis_server.port) as proxy, dispatching(through(proxy, settings)) as dispatcher:
        dispatcher.step()  # connects, and loads the script
        publish_numbers(bus, 1, 2)
        proxy.lose_reply(0)
        step_until(dispatcher, lambda: proxy.has_lost)
        step_until(dispatcher, lambda: queued(bus, "s") == 0)
    assert receiver.times == [1, 2]
    assert [delivery.attempt for delivery in receiver.deliveries] == [1, 1]


def test_an_ack_whose_reply_was_lost_is_said_again(bus, settings, redis_server, receiver):
    gate = receiver.gate()
    receiver.script = in_turn(Answer(gate=gate))
    follow(bus, "s", receiver)
    publish_numbers(bus, 1, 2)
    with Proxy(redis_server.port) as proxy, dispatching(through(proxy, settings)) as dispatcher:
        step_until(dispatcher, lambda: receiver.deliveries)
        proxy.lose_reply(0)
        gate.set()
        step_until(dispatcher, lambda: proxy.has_lost)
        step_until(dispatcher, lambda: queued(bus, "s") == 0)
    assert receiver.times == [1, 2]


def test_what_a_lost_reply_leased_is_given_back_too(bus, settings, redis_server, receiver):
    follow(bus, "s", receiver)
    with Proxy(redis_server.port) as proxy, dispatching(through(proxy, settings)) as dispatcher:
        dispatcher.step()
        publish_numbers(bus, 1)
        proxy.lose_reply(0)
        step_until(dispatcher, lambda: proxy.has_lost)
        assert bus.main.snapshot().pending
        dispatcher.give_back()
    assert not bus.main.snapshot().pending
    assert receiver.deliveries == []


def test_a_lost_wake_up_connection_is_replaced(bus, dispatcher, receiver):
    follow(bus, "s", receiver)
    dispatcher.step()
    bus.link.call("CLIENT", "KILL", "TYPE", "pubsub")
    publish_numbers(bus, 1)
    step_until(dispatcher, lambda: queued(bus, "s") == 0)
    [(_, listeners)] = [bus.link.call("PUBSUB", "NUMSUB", bus.keys.wake_channel)]
    assert listeners == 1


def test_without_wake_ups_it_still_delivers(bus, dispatcher, redis_server, receiver):
    """Redis takes no more connections: those that are there must do."""
    follow(bus, "s", receiver)
    dispatcher.step()
    with redis_server.client() as client:
        usual = client.config_get("maxclients")["maxclients"]
        client.config_set("maxclients", "1")
        try:
            bus.link.call("CLIENT", "KILL", "TYPE", "pubsub")
            publish_numbers(bus, 1, 2)
            step_until(dispatcher, lambda: queued(bus, "s") == 0)
        finally:
            client.config_set("maxclients", usual)
    assert receiver.times == [1, 2]


def test_what_was_dropped_is_told_until_a_delivery_that_says_so_succeeds(bus, dispatcher, receiver):
    gate = receiver.gate()
    receiver.script = in_turn(Answer(500), Answer(gate=gate))
    follow(bus, "s", receiver)
    publish_numbers(bus, 1, 2, 3, 4, 5, 6)
    bus.lanes.drop("s", "0", 2, "memory")
    step_until(dispatcher, lambda: len(receiver.deliveries) == 2)
    bus.lanes.drop("s", "0", 1, "memory")  # behind the one in flight, which knows nothing of it
    gate.set()
    step_until(dispatcher, lambda: queued(bus, "s") == 0)
    told = [(d.times, d.headers.get("routemaster-dropped")) for d in receiver.deliveries]
    assert told == [([3], "1-2"), ([3], "1-2"), ([5], "4-4"), ([6], None)]
    assert [delivery.sequence[0] for delivery in receiver.deliveries] == [3, 3, 5, 6]


def test_a_new_event_tells_of_a_lane_that_was_dropped_whole(bus, dispatcher, receiver):
    follow(bus, "s", receiver)
    publish_numbers(bus, 1, 2)
    bus.lanes.drop("s", "0", 9, "memory")
    publish_numbers(bus, 3)
    step_until(dispatcher, lambda: queued(bus, "s") == 0)
    [delivery] = receiver.deliveries
    assert (delivery.times, delivery.headers["routemaster-dropped"]) == ([3], "1-2")


@pytest.mark.parametrize("reachable", [True, False], ids=["refused", "gone"])
def test_what_redis_does_not_take_now_is_said_again_in_peace(
    bus, settings, redis_server, receiver, reachable
):
    """Not as fast as it is refused: Redis is in trouble already."""
    gate = receiver.gate()
    receiver.script = in_turn(Answer(gate=gate))
    follow(bus, "s", receiver)
    publish_numbers(bus, 1, 2)
    with Proxy(redis_server.port) as proxy, dispatching(through(proxy, settings)) as dispatcher:
        step_until(dispatcher, lambda: receiver.deliveries)
        with redis_server.client() as client:
            client.config_set("min-replicas-to-write", "1")
            try:
                proxy.is_cut = not reachable
                gate.set()
                turns, until_ms = 0, bus.clock.mono_ms() + 1000
                while bus.clock.mono_ms() < until_ms:
                    dispatcher.step()
                    turns += 1
            finally:
                client.config_set("min-replicas-to-write", "0")
            proxy.is_cut = False
        step_until(dispatcher, lambda: queued(bus, "s") == 0)
    assert turns < 60
    assert receiver.times == [1, 2]

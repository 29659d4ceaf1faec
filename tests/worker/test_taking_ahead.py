"""What a dispatcher takes ahead of a free slot: it must not outlive its subscription."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from routemaster.bus import Bus
from routemaster.delivery.courier import Courier
from routemaster.worker import dispatcher as dispatching_module
from routemaster.worker.dispatcher import Dispatcher
from tests.e2e.receiver import Answer, Receiver, in_turn
from tests.faulty_proxy import AFTER, FaultyProxy, Trap
from tests.worker.turns import (
    dispatching,
    follow,
    publish_numbers,
    queued,
    step_until,
    through,
)  # fmt: skip

LONG_MS = 60_000
CHANGES: dict[str, Callable[[Bus, Receiver], object]] = {
    "unsubscribed": lambda bus, _: bus.subscribers.remove("b", "uid"),
    "paused": lambda bus, _: bus.subscribers.set_state("b", "paused"),
    "moved": lambda bus, elsewhere: follow(bus, "b", elsewhere, "b"),
}


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """No delivery is ever too slow, and no batch waits too long: the tests decide when."""
    for name in ("SLOW_MS", "QUICK_MS", "AHEAD_MS"):
        monkeypatch.setattr(dispatching_module, name, LONG_MS)


@pytest.fixture
def elsewhere() -> Iterator[Receiver]:
    started = Receiver()
    yield started
    started.close()


@pytest.fixture
def one_slot(settings):
    return replace(settings, worker_threads=1)


@pytest.fixture
def dispatcher(one_slot) -> Iterator[Dispatcher]:
    with dispatching(one_slot) as made:
        yield made


@pytest.fixture
def gate(bus, dispatcher, receiver) -> threading.Event:
    """a's delivery is in the only slot until it is set, b's batch is taken ahead."""
    return held(bus, dispatcher, receiver)


def held(bus: Bus, dispatcher: Dispatcher, receiver: Receiver) -> threading.Event:
    gate = receiver.gate()
    receiver.script = in_turn(Answer(gate=gate))
    follow(bus, "a", receiver, "a")
    follow(bus, "b", receiver, "b")
    publish_numbers(bus, 1, topic="a")
    step_until(dispatcher, lambda: receiver.deliveries)
    publish_numbers(bus, 2, topic="b")
    step_until(dispatcher, lambda: pending(bus) == 2)
    step_until(dispatcher, lambda: len(dispatcher._ahead) == 1)
    return gate


def pending(bus: Bus) -> int:
    return len(bus.main.snapshot().pending)


def test_a_free_slot_is_filled_without_asking(bus, dispatcher, receiver, redis_server, gate):
    assert dispatcher.in_flight == 1
    with redis_server.client() as client:
        # Everybody's scripts wait; the wake-ups' connection is only read.
        client.execute_command("CLIENT", "PAUSE", "60000", "WRITE")
        gate.set()
        step_until(dispatcher, lambda: receiver.times == [1, 2])
        client.execute_command("CLIENT", "UNPAUSE")
    step_until(dispatcher, lambda: queued(bus, "b") == 0)
    assert [delivery.attempt for delivery in receiver.deliveries] == [1, 1]


@pytest.mark.parametrize("change", CHANGES)
def test_what_was_taken_ahead_is_not_sent_after_a_change(
    bus, dispatcher, receiver, elsewhere, gate, change
):
    CHANGES[change](bus, elsewhere)
    gate.set()  # in the same turn in which it may hear of the change
    step_until(dispatcher, lambda: queued(bus, "a") == 0)
    publish_numbers(bus, 3, topic="a")
    step_until(dispatcher, lambda: queued(bus, "a") == 0)
    assert receiver.times == [1, 3]
    if change == "paused":
        assert (pending(bus), queued(bus, "b")) == (0, 1)
        bus.subscribers.set_state("b", "active")
        step_until(dispatcher, lambda: receiver.times == [1, 3, 2])
    if change == "moved":
        step_until(dispatcher, lambda: elsewhere.times == [2])


def test_nor_when_it_can_first_be_heard_after_the_slot_is_free(
    bus, dispatcher, receiver, gate, monkeypatch
):
    wait = Courier.wait
    left: list[bool] = []

    def wait_and_leave(self: Courier, seconds: float) -> Any:
        ended, readable = wait(self, seconds)
        if ended and not left:
            left.append(bus.subscribers.remove("b", "uid"))
        return ended, readable

    monkeypatch.setattr(Courier, "wait", wait_and_leave)
    gate.set()
    step_until(dispatcher, lambda: queued(bus, "a") == 0)
    publish_numbers(bus, 3, topic="a")
    step_until(dispatcher, lambda: queued(bus, "a") == 0)
    assert receiver.times == [1, 3]


class Slow(FaultyProxy):
    """The trap's answer is told all the same, when `act` has returned."""

    def _springs(self, commands: list[list[bytes]], when: str) -> bool:
        super()._springs(commands, when)
        return False


def test_nor_when_the_change_is_heard_before_the_answer_that_brings_it(
    bus, one_slot, redis_server, receiver
):
    gate = receiver.gate()
    receiver.script = in_turn(Answer(gate=gate))
    follow(bus, "a", receiver, "a")
    follow(bus, "b", receiver, "b")
    publish_numbers(bus, 1, topic="a")
    with (
        Slow(redis_server.port, random.Random(1)) as proxy,
        dispatching(through(proxy, one_slot)) as dispatcher,
    ):
        step_until(dispatcher, lambda: receiver.deliveries)
        step_until(dispatcher, lambda: not dispatcher._talk.is_open)

        def leave() -> None:
            bus.subscribers.remove("b", "uid")
            until_s = time.monotonic() + 1  # below the time limit of an answer
            while "b" not in dispatcher._changed and time.monotonic() < until_s:
                time.sleep(0.001)

        publish_numbers(bus, 2, topic="b")
        trap = proxy.set(Trap("queue_take", AFTER, leave))
        step_until(dispatcher, trap.has_sprung.is_set)
        step_until(dispatcher, lambda: not dispatcher._talk.is_open)
        gate.set()
        step_until(dispatcher, lambda: queued(bus, "a") == 0)
        publish_numbers(bus, 3, topic="a")
        step_until(dispatcher, lambda: queued(bus, "a") == 0)
    assert receiver.times == [1, 3]


def test_what_waits_too_long_goes_back(bus, dispatcher, receiver, gate, monkeypatch):
    monkeypatch.setattr(dispatching_module, "AHEAD_MS", 0)
    monkeypatch.setattr(dispatching_module, "QUICK_MS", 100)
    step_until(dispatcher, lambda: pending(bus) == 1)
    assert receiver.times == [1]
    publish_numbers(bus, 3, topic="b")  # wakes it; it does not take ahead again
    dispatcher.step()
    assert pending(bus) == 1
    gate.set()
    step_until(dispatcher, lambda: receiver.times == [1, 2, 3])
    assert [delivery.attempt for delivery in receiver.deliveries] == [1, 1, 1]


def test_who_cannot_hear_holds_nothing_ahead(bus, dispatcher, receiver, redis_server, gate):
    with redis_server.client() as client:
        usual = client.config_get("maxclients")["maxclients"]
        client.config_set("maxclients", "1")
        try:
            bus.link.call("CLIENT", "KILL", "TYPE", "pubsub")
            step_until(dispatcher, lambda: pending(bus) == 1)
        finally:
            client.config_set("maxclients", usual)
    assert receiver.times == [1]
    gate.set()
    step_until(dispatcher, lambda: receiver.times == [1, 2])


def test_it_goes_back_at_once_when_the_worker_stops(bus, dispatcher, receiver, gate):
    def has_let_go() -> bool:
        dispatcher.step(taking=False)
        return pending(bus) == 1

    step_until(dispatcher, has_let_go)
    assert dispatcher.in_flight == 1
    dispatcher.give_back()
    assert pending(bus) == 0
    assert receiver.times == [1]

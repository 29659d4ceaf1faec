"""The waiting room: who is called, and that nobody misses what was said."""

from __future__ import annotations

import threading

import pytest

from routemaster.web.waiting import Place, Room
from tests.integration.processes import PATIENCE_S, eventually

HOUR_MS = 3_600_000


@pytest.fixture
def room(bus):
    made = Room(bus)
    yield made
    made.close()
    if made._thread:
        made._thread.join(PATIENCE_S)
        assert not made._thread.is_alive()


class Waiting:
    def __init__(self, room, name, until_ms=None):
        self.called = threading.Event()
        until_ms = room._bus.clock.mono_ms() + HOUR_MS if until_ms is None else until_ms
        self.place = Place(name, room.ticket(name), until_ms, self.called.set)

    def enter(self, room):
        room.enter(self.place)
        return self

    def is_called(self):
        return self.called.wait(PATIENCE_S)


def listened_for(bus, room, name="s"):
    """Somebody waited for it before."""
    assert Waiting(room, name).enter(room).is_called()
    assert room.ticket(name) is not None


def say(bus, name="s"):
    assert bus.link.call("PUBLISH", bus.keys.waiting(name), "") == 1


def test_who_looked_before_anybody_listened_looks_once_more(bus, room):
    assert room.ticket("s") is None
    assert Waiting(room, "s").enter(room).is_called()
    assert bus.link.call("PUBSUB", "NUMSUB", bus.keys.waiting("s"))[1] == 1


def test_what_is_said_between_a_look_and_the_wait_is_not_missed(bus, room):
    listened_for(bus, room)
    late = Waiting(room, "s")
    ticket = room.ticket("s")
    say(bus)
    eventually(lambda: room.ticket("s") != ticket)
    assert late.enter(room).is_called()


def test_a_message_calls_one_the_one_with_the_least_time_left(bus, room):
    listened_for(bus, room)
    now_ms = bus.clock.mono_ms()
    waiting = [Waiting(room, "s", now_ms + n * HOUR_MS).enter(room) for n in (3, 1, 2)]
    other = Waiting(room, "s", now_ms + 4 * HOUR_MS).enter(room)
    for first in (waiting[1], waiting[2], waiting[0]):
        assert not first.called.is_set()
        say(bus)
        assert first.is_called()
    assert not other.called.is_set()


def test_a_message_for_one_subscriber_calls_no_other(bus, room):
    for name in ("s", "t"):
        listened_for(bus, room, name)
    mine, other = Waiting(room, "s").enter(room), Waiting(room, "t").enter(room)
    say(bus, "s")
    assert mine.is_called()
    assert not other.called.is_set()


def test_who_left_is_not_called_and_the_next_is(bus, room):
    listened_for(bus, room)
    gone, next_one = Waiting(room, "s").enter(room), Waiting(room, "s").enter(room)
    assert room.leave(gone.place)
    assert not room.leave(gone.place)
    say(bus)
    assert next_one.is_called()
    assert not gone.called.is_set()


def test_everybody_is_called_when_it_closes_and_nobody_waits_after(bus, room):
    listened_for(bus, room)
    waiting = [Waiting(room, "s").enter(room) for _ in range(3)]
    room.close()
    assert all(one.is_called() for one in waiting)
    assert Waiting(room, "s").enter(room).is_called()


def test_when_the_connection_is_lost_everybody_looks(bus, room):
    listened_for(bus, room)
    waiting = Waiting(room, "s").enter(room)
    bus.link.call("CLIENT", "KILL", "TYPE", "pubsub")
    assert waiting.is_called()
    listened_for(bus, room)


def test_time_is_up(bus, room):
    listened_for(bus, room)
    assert Waiting(room, "s", bus.clock.mono_ms() + 1).enter(room).is_called()

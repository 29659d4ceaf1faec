"""Publishing without HTTP: by whose table it is decided, and how often it is tried."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from routemaster.clients import remove_token
from routemaster.errors import (
    Forbidden,
    InvalidInput,
    KeyReused,
    StoreUnavailable,
    TooLarge,
    Unauthenticated,
)
from routemaster.identity import Credentials
from routemaster.publish import ATTEMPTS, Publication
from routemaster.store.events import Stored
from routemaster.subscribe import unsubscribe
from tests.busses import event, follow, give_token, publish, token_of
from tests.conftest import ROOT_KEY
from tests.web.assembling import bus_maker

ONE = json.dumps(event()).encode()


@pytest.fixture
def make_bus():
    with bus_maker() as make:
        yield make


@pytest.fixture
def bus(make_bus, settings):
    made = make_bus(settings)
    give_token(made, "alice")
    return made


@pytest.fixture
def other(make_bus, settings):
    """Another process on the same Redis."""
    return make_bus(settings)


def queued(bus, name: str) -> int:
    [summary] = bus.subscribers.summaries([name])
    return int(summary.queued)


def test_the_hot_path_is_one_round_trip_whatever_the_number_of_subscribers(bus):
    for n in range(20):
        follow(bus, f"sub-{n}", "orders")
    publish(bus, "alice", "orders", ONE)
    calls = []
    replies = bus.link._replies

    def counted(commands):
        calls.append(len(commands))
        return replies(commands)

    bus.link._replies = counted
    assert publish(bus, "alice", "orders", ONE) == Stored(1, 0)
    assert calls == [1]


def test_a_subscription_made_elsewhere_counts_at_once(bus, other):
    publish(bus, "alice", "orders", ONE)
    follow(other, "bob", "orders")
    publish(bus, "alice", "orders", ONE)
    assert queued(bus, "bob") == 1
    unsubscribe(other, "bob")
    follow(other, "carol", "orders")
    publish(bus, "alice", "orders", ONE)
    assert queued(bus, "carol") == 1


def test_a_token_made_elsewhere_counts_at_once_and_so_does_its_end(bus, other):
    publish(bus, "alice", "orders", ONE)
    give_token(other, "bob")
    assert publish(bus, "bob", "bills", ONE) == Stored(1, 0)
    remove_token(other, token_of("bob"))
    with pytest.raises(Unauthenticated):
        publish(bus, "bob", "bills", ONE)


def test_a_refusal_is_not_by_an_old_table_either(bus, other):
    give_token(bus, "bob")
    publish(bus, "alice", "orders", ONE)
    # Here the topic belongs to alice; elsewhere it was deleted and bob may have it.
    other.topics.remove(other.directory.fresh(), "orders")
    assert publish(bus, "bob", "orders", ONE) == Stored(1, 0)
    with pytest.raises(Forbidden):
        publish(bus, "alice", "orders", ONE)


def test_a_target_that_came_elsewhere(bus, other):
    publish(bus, "alice", "orders", ONE)
    follow(other, "bob", "orders")
    body = json.dumps(event(1, target="bob")).encode()
    assert publish(bus, "alice", "orders", body) == Stored(1, 0)


def test_a_table_that_never_stands_still_is_for_later(bus, other):
    publish(bus, "alice", "orders", ONE)
    tries = []
    store = bus.publisher._events
    real = store.publish

    class Restless:
        """Something changes before every try."""

        def publish(self, *args, **kwargs):
            tries.append(1)
            give_token(other, f"client-{len(tries)}")
            return real(*args, **kwargs)

    bus.publisher._events = Restless()
    with pytest.raises(StoreUnavailable) as refused:
        publish(bus, "alice", "orders", ONE)
    assert refused.value.reason.startswith("busy")
    assert len(tries) == ATTEMPTS


def test_a_few_changes_under_a_publish_do_not_matter(bus, other):
    publish(bus, "alice", "orders", ONE)
    follow(bus, "bob", "orders")
    real, left = bus.publisher._events.publish, [ATTEMPTS - 2]

    class Restless:
        def publish(self, *args, **kwargs):
            if left[0]:
                left[0] -= 1
                give_token(other, f"client-{left[0]}")
            return real(*args, **kwargs)

    bus.publisher._events = Restless()
    assert publish(bus, "alice", "orders", ONE) == Stored(1, 0)
    assert queued(bus, "bob") == 1


def test_duplicates_are_counted_and_a_key_is_bound_to_its_body(bus):
    assert publish(bus, "alice", "orders", ONE, key="k") == Stored(1, 0)
    assert publish(bus, "alice", "orders", ONE, key="k") == Stored(0, 1)
    with pytest.raises(KeyReused):
        publish(bus, "alice", "orders", ONE + b" ", key="k")


def test_root_claims_nothing(bus):
    credentials = Credentials(f"Bearer {ROOT_KEY}")
    bus.publisher.publish(Publication(credentials, "orders", ONE))
    assert bus.directory.fresh().topics["orders"].publisher is None


def test_what_is_checked_first_is_who_asks(bus):
    nobody = Credentials("Bearer nobody")
    with pytest.raises(Unauthenticated):
        bus.publisher.publish(Publication(nobody, "BAD TOPIC", b"{"))
    with pytest.raises(InvalidInput):
        publish(bus, "alice", "BAD TOPIC", ONE)


def test_the_fan_out_limit_counts_events_times_subscribers(make_bus, settings, bus):
    for name in ("bob", "carol", "dave"):
        follow(bus, name, "orders")
    small = make_bus(replace(settings, max_fanout=7))
    two, three = json.dumps([event(), event()]), json.dumps([event(), event(), event()])
    assert publish(small, "alice", "orders", two.encode()) == Stored(2, 0)
    with pytest.raises(TooLarge):
        publish(small, "alice", "orders", three.encode())
    assert queued(bus, "bob") == 2

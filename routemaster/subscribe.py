"""Changing who gets what: decided by the routing table, repeated when it moved on meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from routemaster.bus import Bus
from routemaster.domain.subscription import Subscription
from routemaster.errors import Forbidden, NotFound, Stale, StoreUnavailable
from routemaster.identity import Identity
from routemaster.publish import ATTEMPTS, may_publish
from routemaster.store.directory import Directory
from routemaster.store.events import uid
from routemaster.store.table import Table

T = TypeVar("T")
# Enough for a backlog of 200,000 batches; what is left, the workers sweep.
SWEEPS = 200


def by_newest_table(directory: Directory, decide: Callable[[Table], T]) -> T:
    for _ in range(ATTEMPTS):
        try:
            return decide(directory.fresh())
        except Stale:
            continue
    raise StoreUnavailable("busy: subscriptions are changing too fast")


def subscribe(bus: Bus, name: str, wanted: Subscription) -> None:
    by_newest_table(bus.directory, lambda table: bus.subscribers.set(table, name, wanted))


def leave_topic(bus: Bus, name: str, topic: str) -> None:
    def leave(table: Table) -> bool:
        return bus.subscribers.leave(table, name, topic)

    if not by_newest_table(bus.directory, leave):
        raise NotFound(f"{name} is not subscribed to {topic}")


def unsubscribe(bus: Bus, name: str) -> None:
    if not bus.subscribers.remove(name, uid()):
        raise no_subscription(name)
    for _ in range(SWEEPS):
        if not bus.lanes.sweep():
            break


def set_state(bus: Bus, name: str, state: str) -> None:
    if not bus.subscribers.set_state(name, state):
        raise no_subscription(name)


def signing_secret(bus: Bus, name: str) -> str:
    secret = bus.subscribers.secret(name)
    if secret is None:
        raise NotFound(f"{name} has no signing secret: subscribe, or make one with POST")
    return secret


def rotate_secret(bus: Bus, name: str, secret: str) -> None:
    if not bus.subscribers.set_secret(name, secret):
        raise no_subscription(name)


def no_subscription(name: str) -> NotFound:
    return NotFound(f"{name} has no subscription")


def delete_topic(bus: Bus, identity: Identity, name: str) -> None:
    def remove(table: Table) -> bool:
        topic = table.topics.get(name)
        # An unowned topic is nobody's to delete but the operator's.
        if topic and not may_publish(identity, topic):
            raise Forbidden(f"the topic belongs to {topic.publisher or 'nobody yet'}")
        return bus.topics.remove(table, name)

    if not by_newest_table(bus.directory, remove):
        raise NotFound(f"there is no topic {name}")

"""A dispatcher that is driven turn by turn."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import ip_network

from routemaster.bus import Bus, assemble
from routemaster.delivery.courier import Courier, CourierRules
from routemaster.domain.subscription import Subscription
from routemaster.settings import Settings
from routemaster.store.wake import WakeUps
from routemaster.subscribe import subscribe
from routemaster.worker.dispatcher import Dispatcher
from tests.busses import event, publish
from tests.e2e.receiver import Receiver
from tests.proxy import Proxy

# Well below a lease (35 s): what comes back only with the end of one comes too late.
PATIENCE_S = 20
LOOPBACK = ip_network("127.0.0.0/8")


@contextmanager
def dispatching(settings: Settings) -> Iterator[Dispatcher]:
    bus = assemble(settings)
    courier = Courier(CourierRules(30, 10, True, [LOOPBACK]), bus.clock)
    wake_ups = WakeUps(bus.link, bus.keys)
    made = Dispatcher(bus, courier, wake_ups, "w", random.Random(1))
    yield made
    made.close()
    courier.close()
    wake_ups.close()
    bus.link.close()


def follow(bus: Bus, name: str, receiver: Receiver, topic: str = "a") -> None:
    body = {"topics": [topic], "callback": receiver.url, "uuid": name, "timeout": 0, "max": 1}
    subscribe(bus, name, Subscription.parse(body, allow_http=True, allowed_networks=[LOOPBACK]))


def publish_numbers(bus: Bus, *numbers: int, topic: str = "a") -> None:
    publish(bus, "publisher", topic, json.dumps([event(n) for n in numbers]).encode())


def step_until(dispatcher: Dispatcher, is_so: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s
        dispatcher.step()


def queued(bus: Bus, name: str) -> int:
    return bus.subscribers.summaries([name])[0].queued


def oldest_batch(bus: Bus, lane: str) -> str:
    bid: bytes = bus.link.call("LINDEX", bus.keys.lane_batches_prefix + lane, 0)
    return bus.keys.batch_prefix + bid.decode()


def through(proxy: Proxy, settings: Settings) -> Settings:
    return replace(settings, redis_url=proxy.url)

"""A worker with nothing to do does nothing, and hears at once when there is something."""

from __future__ import annotations

import statistics
import time

import pytest

from tests.e2e.running import event

LOOK_S = 1.0  # how often a dispatcher looks by itself


@pytest.fixture
def bus(harmed_bus):
    yield harmed_bus
    harmed_bus.close_workers()


def test_an_idle_worker_needs_little(bus):
    worker = bus.start_worker()
    before_s, began_s = worker.cpu_s(), time.monotonic()
    time.sleep(3 * LOOK_S)  # what is measured
    assert worker.cpu_s() - before_s < 0.1 * (time.monotonic() - began_s)


def test_an_event_wakes_an_idle_worker(bus, receiver, topic):
    bus.start_worker()
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic)
    delays_s = []
    for number in range(20):
        began_s = time.monotonic()
        publisher.publish(topic, event(number))
        delays_s.append(receiver.wait_for_deliveries(number + 1)[-1].arrived_s - began_s)
    assert statistics.median(delays_s) < LOOK_S / 2

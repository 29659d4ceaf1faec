"""Workers die, freeze and are stopped, and Redis too: nothing is lost, and order holds."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from routemaster.store.keys import Keys
from tests.e2e.receiver import Answer, Receiver, in_turn
from tests.e2e.running import RunningBus, WorkerProcess, event, events
from tests.integration.processes import eventually

KEYS = Keys("rm")


@pytest.fixture
def bus(harmed_bus):
    yield harmed_bus
    for worker in harmed_bus.workers:
        assert "Traceback" not in worker.log()
    harmed_bus.close_workers()
    with harmed_bus.redis.client() as client:
        client.flushall()


def leases(bus: RunningBus) -> dict[bytes, bytes]:
    with bus.redis.client() as client:
        found: dict[bytes, bytes] = client.hgetall(KEYS.leases("main"))
        return found


def holder(bus: RunningBus) -> WorkerProcess:
    [lease] = leases(bus).values()
    pid = int(lease.split()[1].rpartition(b".")[2])
    [found] = [worker for worker in bus.workers if worker.pid == pid]
    return found


def end_leases(bus: RunningBus) -> None:
    """As if their time were over: a lease is made to outlast any delivery, tests need not."""
    with bus.redis.client() as client:
        for job in client.zrange(KEYS.pending("main"), 0, -1):
            client.zadd(KEYS.pending("main"), {job: 1})


def held_in_mid_air(receiver: Receiver) -> threading.Event:
    """The first delivery is answered when the test says so."""
    gate = receiver.gate()
    receiver.script = in_turn(Answer(gate=gate))
    return gate


def queued(subscriber) -> int:
    return int(subscriber.subscription()["events"]["queued"])


def check_killed(bus, receiver, topic, lease_is_over):
    held_in_mid_air(receiver)
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=2)
    publisher.publish(topic, *events(1, 10))
    receiver.wait_for_deliveries(1)
    holder(bus).kill()
    lease_is_over()
    made = receiver.wait_for_deliveries(6)
    assert [delivery.times for delivery in made[1:]] == [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]
    assert (made[0].bid, made[0].events) == (made[1].bid, made[1].events)
    eventually(lambda: queued(subscriber) == 0, receiver.summary)
    assert subscriber.subscription()["events"]["sent"] == 10
    assert len(receiver.deliveries) == 6


def test_a_killed_workers_batch_is_sent_by_another(bus, receiver, topic):
    bus.start(workers=2)
    check_killed(bus, receiver, topic, lambda: end_leases(bus))


@pytest.mark.faults
def test_a_killed_workers_lease_ends_by_itself(bus, receiver, topic):
    workers = [bus.launch_worker(ROUTEMASTER_TIMEOUT="1") for _ in range(2)]
    for worker in workers:
        worker.wait_until_up()
    check_killed(bus, receiver, topic, lambda: None)


def test_a_worker_frozen_for_longer_than_its_lease_does_no_harm(bus, receiver, topic):
    first, second = receiver.gate(), receiver.gate()
    receiver.script = in_turn(Answer(gate=first), Answer(), Answer(gate=second))
    bus.start(workers=2)
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=1)
    publisher.publish(topic, *events(1, 4))
    receiver.wait_for_deliveries(1)
    frozen = holder(bus)
    frozen.send(signal.SIGSTOP)
    end_leases(bus)
    receiver.wait_for_deliveries(3)  # the second batch is in the other's hands by now
    before = leases(bus)
    first.set()
    frozen.send(signal.SIGCONT)
    frozen.wait_for_log("delivered ")
    frozen.send(signal.SIGTERM)  # it ends when it has said what it owes
    assert frozen.wait() == 0
    assert leases(bus) == before
    second.set()
    made = receiver.wait_for_deliveries(5)
    assert [delivery.times for delivery in made] == [[1], [1], [2], [3], [4]]
    eventually(lambda: queued(subscriber) == 0, receiver.summary)
    assert subscriber.subscription()["events"]["sent"] == 4


def test_a_stopped_worker_finishes_what_it_can_and_gives_the_rest_back(bus, make_receiver, topic):
    quick, stuck = make_receiver(), make_receiver()
    gate = held_in_mid_air(quick)
    held_in_mid_air(stuck)
    worker = bus.start_worker()
    publisher, one, other = bus.client(), bus.client(), bus.client()
    one.subscribe(quick, topic, max=1)
    other.subscribe(stuck, topic, max=1)
    publisher.publish(topic, *events(1, 3))
    quick.wait_for_deliveries(1)
    stuck.wait_for_deliveries(1)
    worker.send(signal.SIGTERM)
    gate.set()
    assert worker.wait() == 0
    assert leases(bus) == {}
    assert quick.times == [1]
    assert queued(one) == 2
    bus.start_worker()
    assert quick.wait_for_events(3) == [1, 2, 3]
    assert stuck.wait_for_events(4) == [1, 1, 2, 3]
    assert [delivery.attempt for delivery in stuck.deliveries] == [1, 1, 1, 1]
    assert stuck.deliveries[0].bid == stuck.deliveries[1].bid


def test_a_job_that_kills_its_workers_is_set_aside_and_stops_nobody(bus, make_receiver, topic):
    deadly, good = make_receiver(), make_receiver()
    publisher, victim, other = bus.client(), bus.client(), bus.client()
    victim.subscribe(deadly, topic)
    other.subscribe(good, topic, max=1)
    bus.env["ROUTEMASTER_MAX_RECLAIMS"] = "3"
    try:
        for number in (1, 2, 3):
            held_in_mid_air(deadly)
            bus.start(workers=2)
            publisher.publish(topic, event(number))
            deadly.wait_for_deliveries(number)
            # It dies of that one alone: a batch that is delivered meanwhile counts no deaths.
            eventually(lambda: queued(other) == 0, good.summary)
            holder(bus).kill()
            end_leases(bus)
    finally:
        del bus.env["ROUTEMASTER_MAX_RECLAIMS"]
    first = deadly.deliveries[0].bid
    eventually(lambda: victim.operation(first)["reason"], lambda: bus.workers[-1].log())
    publisher.publish(topic, *events(4, 9))
    assert good.wait_for_events(9) == list(range(1, 10))
    assert victim.operation(first)["status"] == "ERROR"
    assert "its lease expired 3 times" in victim.operation(first)["reason"]
    assert "quarantined queue=main" in "".join(worker.log() for worker in bus.workers)
    assert len(deadly.deliveries) == 3
    deadly.script = in_turn()
    victim.redeliver(first)
    assert deadly.wait_for_events(12)[3:] == list(range(1, 10))


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_worker_outlives_redis(bus, receiver, topic, end):
    worker = bus.start_worker()
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=1)
    publisher.publish(topic, event(1))
    receiver.wait_for_deliveries(1)
    eventually(lambda: queued(subscriber) == 0)
    getattr(bus.redis, end)()
    worker.wait_for_log("store unavailable")
    bus.redis.start()
    publisher.publish(topic, *events(2, 4))
    assert receiver.wait_for_events(4) == [1, 2, 3, 4]
    eventually(lambda: queued(subscriber) == 0)
    assert not worker.has_ended


def test_what_is_owed_to_redis_is_said_when_it_is_back(bus, receiver, topic):
    gate = held_in_mid_air(receiver)
    worker = bus.start_worker()
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=1)
    publisher.publish(topic, *events(1, 2))
    receiver.wait_for_deliveries(1)
    bus.redis.kill()
    gate.set()
    worker.wait_for_log("delivered ")
    bus.redis.start()
    # Long before the lease of the first would be over.
    eventually(lambda: queued(subscriber) == 0, worker.log)
    assert receiver.times == [1, 2]


def test_a_frozen_redis_is_waited_for(bus, receiver, topic):
    worker = bus.start_worker()
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=1)
    os.kill(bus.redis.pid, signal.SIGSTOP)
    try:
        worker.wait_for_log("store unavailable")
    finally:
        os.kill(bus.redis.pid, signal.SIGCONT)
    publisher.publish(topic, *events(1, 3))
    eventually(lambda: queued(subscriber) == 0, worker.log)
    assert receiver.times == [1, 2, 3]


def test_a_full_redis_is_drained(bus, receiver, topic):
    publisher, subscriber = bus.client(), bus.client()
    subscriber.subscribe(receiver, topic, max=3)
    publisher.publish(topic, *events(1, 10))
    with bus.redis.client() as client:
        client.config_set("maxmemory", "1")
        client.script_flush()
        try:
            bus.start_worker()
            assert receiver.wait_for_events(10) == list(range(1, 11))
            eventually(lambda: queued(subscriber) == 0)
        finally:
            client.config_set("maxmemory", "0")

"""What is done to a running bus. Each nemesis leaves it whole: what was killed is started again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.receiver import Answer, Delivery
from tests.faults.cluster import (
    DEADLINE_S,
    LEASE_S,
    Cluster,
    Faulty,
    Publisher,
    Subscriber,
    Traffic,
)
from tests.faults.history import Life
from tests.faulty_proxy import AFTER, BEFORE, FaultyProxy, Trap

Nemesis = Callable[[Cluster, Traffic], None]
# A trap may wait for something rare.
SPRING_WITHIN_S = 30


def worker_killed_at(script: str, when: str, slot: int | None = None) -> Nemesis:
    """Any worker, or that of the slot."""

    def act(cluster: Cluster, traffic: Traffic) -> None:
        victim = cluster.dice.randrange(len(cluster.workers)) if slot is None else slot
        with Faulty(cluster, f"worker killed {when} {script}"):
            trap = Trap(script, when, lambda: cluster.kill_worker(victim))
            cluster.proxies[victim].set(trap)
            assert trap.has_sprung.wait(SPRING_WITHIN_S), f"nobody called {script}"
            cluster.workers[victim].wait()
            cluster.replace_worker(victim)

    return act


def web_killed_at(script: str, when: str) -> Nemesis:
    def act(cluster: Cluster, traffic: Traffic) -> None:
        with Faulty(cluster, f"web killed {when} {script}"):
            trap = Trap(script, when, cluster.kill_web)
            cluster.web_proxy.set(trap)
            assert trap.has_sprung.wait(SPRING_WITHIN_S), f"nobody called {script}"
            cluster.web.wait_until_up()

    return act


def worker_killed_while_it_posts(cluster: Cluster, traffic: Traffic) -> None:
    """Its subscriber has the batch and has not answered yet."""
    subscriber = cluster.dice.choice(traffic.subscribers)
    usual = subscriber.receiver.script
    killed: list[int] = []

    def kill_first(delivery: Delivery) -> Answer:
        if not killed:
            killed.append(holder_of_most(cluster))
            cluster.kill_worker(killed[0])
        return usual(delivery)

    with Faulty(cluster, "worker killed while it posts"):
        subscriber.receiver.script = kill_first
        wait_for(lambda: killed, "nothing was delivered")
        subscriber.receiver.script = usual
        cluster.workers[killed[0]].wait()
        cluster.replace_worker(killed[0])


def holder_of_most(cluster: Cluster) -> int:
    with cluster.redis.client() as client:
        leases = client.hvals("rm:{0}:jobs:leases:main")
    pids = [int(lease.split()[1].rpartition(b".")[2]) for lease in leases]
    slots = [slot for slot, worker in enumerate(cluster.workers) if worker.pid in pids]
    return max(slots, key=lambda slot: pids.count(cluster.workers[slot].pid), default=0)


def worker_killed(cluster: Cluster, traffic: Traffic) -> None:
    slot = cluster.dice.randrange(len(cluster.workers))
    time.sleep(cluster.dice.uniform(0, 0.3))  # any moment is as good
    with Faulty(cluster, "worker killed"):
        cluster.kill_worker(slot)
        cluster.workers[slot].wait()
        cluster.replace_worker(slot)


def all_workers_killed(cluster: Cluster, traffic: Traffic) -> None:
    with Faulty(cluster, "all workers killed"):
        for slot in range(len(cluster.workers)):
            cluster.kill_worker(slot)
        for slot, worker in enumerate(list(cluster.workers)):
            worker.wait()
            cluster.replace_worker(slot)
        for worker in cluster.workers:
            worker.wait_until_up()


def web_killed(cluster: Cluster, traffic: Traffic) -> None:
    time.sleep(cluster.dice.uniform(0, 0.3))
    with Faulty(cluster, "web killed"):
        cluster.kill_web()
        cluster.web.wait_until_up()


def worker_frozen(cluster: Cluster, traffic: Traffic) -> None:
    """For longer than its lease, and back."""
    worker = cluster.dice.choice(cluster.workers)
    with Faulty(cluster, "worker frozen"):
        worker.send(signal.SIGSTOP)
        try:
            time.sleep(LEASE_S + 1.5)
        finally:
            worker.send(signal.SIGCONT)


def rolling_restart(cluster: Cluster, traffic: Traffic) -> None:
    """Nothing may come twice."""
    for slot, worker in enumerate(list(cluster.workers)):
        with Faulty(cluster, "worker restarted", may_repeat=False):
            worker.send(signal.SIGTERM)
            assert worker.wait() == 0
            cluster.replace_worker(slot)
        cluster.workers[slot].wait_until_up()
    with Faulty(cluster, "web restarted", may_repeat=False):
        assert cluster.web.stop() == 0
        cluster.web.start()


def redis_restarted(cluster: Cluster, traffic: Traffic) -> None:
    with Faulty(cluster, "redis restarted"):
        cluster.redis.restart()


def redis_killed(cluster: Cluster, traffic: Traffic) -> None:
    with Faulty(cluster, "redis killed"):
        cluster.redis.kill()
        time.sleep(cluster.dice.uniform(0, 1))
        cluster.redis.start()


def redis_away(cluster: Cluster, traffic: Traffic) -> None:
    """For longer than any lease."""
    with Faulty(cluster, "redis away"):
        cluster.redis.stop()
        time.sleep(LEASE_S + 1)
        cluster.redis.start()


def redis_frozen(cluster: Cluster, traffic: Traffic) -> None:
    with Faulty(cluster, "redis frozen"):
        os.kill(cluster.redis.pid, signal.SIGSTOP)
        try:
            time.sleep(2)
        finally:
            os.kill(cluster.redis.pid, signal.SIGCONT)


def redis_full(cluster: Cluster, traffic: Traffic) -> None:
    """Publishing stops, delivering does not."""
    with Faulty(cluster, "redis full", may_repeat=False), cluster.redis.client() as client:
        client.config_set("maxmemory", "1")
        try:
            with refused(traffic):
                time.sleep(1.5)
        finally:
            client.config_set("maxmemory", "0")


def scripts_forgotten(cluster: Cluster, traffic: Traffic) -> None:
    with Faulty(cluster, "scripts forgotten", may_repeat=False), cluster.redis.client() as client:
        client.script_flush()


def connections_cut(cluster: Cluster, traffic: Traffic) -> None:
    with Faulty(cluster, "connections cut"):
        for proxy in proxies(cluster):
            proxy.hang_up()


def replies_dropped(cluster: Cluster, traffic: Traffic) -> None:
    with Faulty(cluster, "replies dropped"):
        for proxy in proxies(cluster):
            proxy.reset_share = 0.1
        time.sleep(2)
        for proxy in proxies(cluster):
            proxy.reset_share = 0.0


def reply_dropped_to(script: str) -> Nemesis:
    """Redis has done it, and nobody is told."""

    def act(cluster: Cluster, traffic: Traffic) -> None:
        with Faulty(cluster, f"reply dropped to {script}"):
            traps = [proxy.set(Trap(script, AFTER, lambda: None)) for proxy in proxies(cluster)]
            wait_for(lambda: any(t.has_sprung.is_set() for t in traps), f"nobody called {script}")
            for proxy in proxies(cluster):
                proxy.unset()

    return act


def redis_slow(cluster: Cluster, traffic: Traffic) -> None:
    with Faulty(cluster, "redis slow"):
        for proxy in proxies(cluster):
            proxy.delay_ms = (30, 70)
        time.sleep(2)
        for proxy in proxies(cluster):
            proxy.delay_ms = (0, 0)


def redis_unreachable(cluster: Cluster, traffic: Traffic) -> None:
    """Connections stay open, and nothing comes."""
    with Faulty(cluster, "redis unreachable"):
        for proxy in proxies(cluster):
            proxy.is_deaf = True
        time.sleep(2)
        for proxy in proxies(cluster):
            proxy.is_deaf = False


def web_killed_while_subscribers_change(script: str, when: str) -> Nemesis:
    def act(cluster: Cluster, traffic: Traffic) -> None:
        guest = traffic.join(f"guest_of_{script}_{when}")
        with Faulty(cluster, f"web killed {when} {script}"):
            trap = cluster.web_proxy.set(Trap(script, when, cluster.kill_web))
            for _ in range(2):
                life = guest.subscribe("orders", max=4, timeout=0)
                guest.receiver.wait_for(partial(has_heard, guest, life))
                guest.leave(life)
            assert trap.has_sprung.is_set(), f"nobody called {script}"

    return act


def has_heard(subscriber: Subscriber, life: Life) -> bool:
    deliveries = subscriber.receiver.deliveries
    return bool(deliveries) and deliveries[-1].user == f"{life.name}:x"


def worker_killed_while_it_renews(when: str) -> Nemesis:
    """A delivery that takes so long has its lease renewed meanwhile."""

    def act(cluster: Cluster, traffic: Traffic) -> None:
        guest = traffic.join(f"slow_{when}", slow_s=0.7 * DEADLINE_S)
        life = guest.subscribe("orders", max=100, timeout=0)
        with Faulty(cluster, f"worker killed {when} queue_renew"):
            whoever_calls_dies(cluster, "queue_renew", when)
        guest.leave(life)

    return act


def whoever_calls_dies(cluster: Cluster, script: str, when: str) -> None:
    traps = [
        proxy.set(Trap(script, when, partial(cluster.kill_worker, slot)))
        for slot, proxy in enumerate(cluster.proxies)
    ]
    wait_for(lambda: any(trap.has_sprung.is_set() for trap in traps), f"nobody called {script}")
    for slot, trap in enumerate(traps):
        cluster.proxies[slot].unset()
        if trap.has_sprung.is_set():
            cluster.workers[slot].wait()
            cluster.replace_worker(slot)


def churn(cluster: Cluster, traffic: Traffic) -> None:
    """A subscriber of the same name leaves and comes back, again and again."""
    guest = traffic.join(f"guest_{cluster.dice.choice('abcdefgh')}{len(traffic.history.lives)}")
    for number in range(8):
        life = guest.subscribe("orders", max=4, timeout=10 * number, concurrency=2)
        sent = len(guest.receiver.deliveries)
        guest.receiver.wait_for_deliveries(sent + 1)
        guest.leave(life)


def memory_short(cluster: Cluster, traffic: Traffic) -> None:
    """One subscriber takes nothing, until its oldest batches are given up; who does that dies."""
    dead, filler = traffic.join("dead", failing=1.0), Publisher(cluster, "bulk")
    dead.stay("bulk", max=100, timeout=0)
    deadly = [
        proxy.set(Trap("lane_drop", AFTER, partial(cluster.kill_worker, slot)))
        for slot, proxy in enumerate(cluster.proxies)
    ]
    with Faulty(cluster, "memory short"):
        deadline_s = time.monotonic() + 2 * SPRING_WITHIN_S
        while not any(trap.has_sprung.is_set() for trap in deadly):
            assert time.monotonic() < deadline_s, "nothing was given up"
            filler.publish(500)
            time.sleep(0.02)
        for slot, trap in enumerate(deadly):
            cluster.proxies[slot].unset()
            if trap.has_sprung.is_set():
                cluster.workers[slot].wait()
                cluster.replace_worker(slot)
        # The job of the one that died comes back when its lease is over.
        wait_for(lambda: any("memory short" in worker.log() for worker in cluster.workers),
                 "nothing more was given up", 2 * SPRING_WITHIN_S)  # fmt: skip
    dead.failing = 0.0


def disk_full(folder: Path) -> Nemesis:
    def act(cluster: Cluster, traffic: Traffic) -> None:
        with Faulty(cluster, "disk full"):
            stuffing = folder / "stuffing"
            with pytest.raises(OSError, match="No space"), stuffing.open("wb", 0) as file:
                while True:
                    file.write(b"x" * 4096)
            wait_for(lambda: said_by_redis(cluster, "aof_last_write_status:err"), "no error")
            with refused(traffic):
                time.sleep(1.5)
            stuffing.unlink()
            wait_for(lambda: said_by_redis(cluster, "aof_last_write_status:ok"), "no recovery")

    return act


def said_by_redis(cluster: Cluster, line: str) -> bool:
    with cluster.redis.client() as client:
        name, _, value = line.partition(":")
        return bool(client.info("persistence").get(name) == value)


def proxies(cluster: Cluster) -> list[FaultyProxy]:
    return [cluster.web_proxy, *cluster.proxies]


@contextmanager
def refused(traffic: Traffic) -> Iterator[None]:
    """What is published meanwhile is refused."""
    history = traffic.history
    began = time.monotonic()
    yield
    ended = time.monotonic()
    during = [p for p in list(history.publishes) if began < p.began and p.ended < ended]
    assert all(publish.result != "ok" for publish in during), during


def wait_for(
    is_so: Callable[[], object], otherwise: str, within_s: float = SPRING_WITHIN_S
) -> None:
    deadline_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline_s, otherwise
        time.sleep(0.005)


KILL_POINTS = [
    *(worker_killed_at(script, when)
      for script in ("queue_take", "queue_ack", "queue_nack", "queue_scrub", "worker_beat",
                     "queue_push", "batches_sweep")
      for when in (BEFORE, AFTER)),
    worker_killed_while_it_posts,
    web_killed_at("publish", BEFORE),
    web_killed_at("publish", AFTER),
    *(worker_killed_while_it_renews(when) for when in (BEFORE, AFTER)),
    *(web_killed_while_subscribers_change(script, when)
      for script in ("subscriber_set", "subscriber_remove") for when in (BEFORE, AFTER)),
]  # fmt: skip
OTHERS = [
    worker_killed, all_workers_killed, web_killed, worker_frozen, rolling_restart, redis_restarted,
    redis_killed, redis_away, redis_frozen, redis_full, scripts_forgotten, connections_cut,
    replies_dropped, redis_slow, redis_unreachable, churn,
    *(reply_dropped_to(script)
      for script in ("publish", "queue_take", "queue_ack", "queue_nack", "queue_scrub")),
]  # fmt: skip

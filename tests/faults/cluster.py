"""The bus as it runs: Redis, a web process and workers, each behind a proxy of its own, and
subscribers and publishers that write down what happens."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import requests

from routemaster.redis_server import find_servers
from routemaster.store.keys import Keys
from tests.conftest import ROOT_KEY
from tests.e2e.receiver import Answer, Delivery, Receiver
from tests.e2e.running import WorkerProcess
from tests.faults.checker import Bounds, problems
from tests.faults.history import FAILED, OK, UNKNOWN, Fault, History, Life, Publish, Request
from tests.faulty_proxy import FaultyProxy
from tests.integration.processes import CHECKOUT, WebProcess
from tests.lua.dump import dump
from tests.lua.invariants import problems as database_problems
from tests.servers import RedisServer

DEADLINE_S, LEASE_S = 2, 3
BOUNDS = Bounds(LEASE_S, DEADLINE_S)
ENV = {
    "ROUTEMASTER_TIMEOUT": str(DEADLINE_S),
    "ROUTEMASTER_CONNECT_TIMEOUT": "1",
    "ROUTEMASTER_LEASE": str(LEASE_S),
    "MAX_BACKOFF_MS": "200",
    "ROUTEMASTER_WEB_PROCESSES": "1",
    # A trap kills the worker of the same job more often than chance would.
    "ROUTEMASTER_MAX_RECLAIMS": "50",
}
REST_WITHIN_S = 40
ASK_TIMEOUT_S = 3
KEYS = Keys("rm")


class Cluster:
    def __init__(
        self, seed: int, workers: int = 2, clocks_h: tuple[int, ...] = (), **redis_options: Any
    ) -> None:
        self.dice = random.Random(seed)
        self.history = History()
        self._clocks_h = clocks_h
        options = {"appendonly": True} | redis_options
        self.redis = RedisServer(find_servers()[0], **options).start()
        self.web_proxy = self._proxy()
        self.proxies = [self._proxy() for _ in range(workers)]
        self.web = WebProcess(self.web_proxy.url, **ENV).launch()
        self.workers = [self._launch(slot) for slot in range(workers)]
        self.ended: list[WorkerProcess] = []
        self.web.wait_until_up()
        for worker in self.workers:
            worker.wait_until_up()

    def _proxy(self) -> FaultyProxy:
        return FaultyProxy(self.redis.port, self.dice).__enter__()

    def _launch(self, slot: int) -> WorkerProcess:
        env = wrong_clock(self._clocks_h[slot]) if self._clocks_h else {}
        return WorkerProcess(self.proxies[slot].url, **ENV, **env)

    # What nemeses do.

    def replace_worker(self, slot: int) -> None:
        """The supervisor's part, after a worker was killed or has ended as asked."""
        self.ended.append(self.workers[slot])
        self.workers[slot] = self._launch(slot)

    def kill_worker(self, slot: int) -> None:
        self.workers[slot].send(signal.SIGKILL)

    def kill_web(self) -> None:
        """The process that answers; gunicorn's master replaces it."""
        for pid in self.web.workers():
            os.kill(pid, signal.SIGKILL)

    # At the end.

    def check(self) -> None:
        try:
            found = self._at_rest() + problems(self.history, BOUNDS)
        except AssertionError as error:
            found = [str(error), *problems(self.history, BOUNDS)]
        if found:
            where = self.history.write(Path(tempfile.mkdtemp(prefix="rm-history-")) / "history")
            faults = [f"{f.kind} {f.began:.2f}-{f.ended:.2f}" for f in self.history.faults]
            shown = [*found[:40], f"history: {where}", *faults]
            raise AssertionError("\n".join(shown) + self._logs())

    def _at_rest(self) -> list[str]:
        self._drain()
        found = []
        for worker in self.workers:
            if worker.has_ended:
                found.append("a worker died that nobody killed")
            else:
                worker.wait_until_up()  # it may have been replaced a moment ago
                worker.send(signal.SIGTERM)
                if worker.wait() != 0:
                    found.append("a worker ended with an error")
        for worker in [*self.workers, *self.ended]:
            for words in ("Traceback", "audit found"):
                if words in worker.log():
                    found.append(f"a worker's log says {words}")
        if "Traceback" in self.web.log():
            found.append("the web process's log says Traceback")
        with self.redis.client() as client:
            stored = dump(client)
        stored.pop(KEYS.pulse, None)
        left = [f"{KEYS.event_gauges}: {stored[KEYS.event_gauges]}"] if any(
            int(value) for value in stored.get(KEYS.event_gauges, {}).values()
        ) else []  # fmt: skip
        return found + left + database_problems(stored, KEYS)

    def _drain(self) -> None:
        deadline_s = time.monotonic() + REST_WITHIN_S
        with self.redis.client() as client:
            while client.hlen(KEYS.index("main")):
                assert time.monotonic() < deadline_s, (
                    f"not drained: {client.hgetall(KEYS.index('main'))}"
                )
                time.sleep(0.05)

    def _logs(self) -> str:
        lines = []
        for worker in [*self.workers, *self.ended]:
            rows = [row for row in worker.log().splitlines() if "delivered" not in row]
            lines += [f"--- worker {worker.pid}", *rows[-30:]]
        web = [row for row in self.web.log().splitlines() if row]
        return "\n".join(["", *lines, "--- web", *web[-30:]])

    def close(self) -> None:
        for worker in [*self.workers, *self.ended]:
            worker.close()
        self.web.close()
        for proxy in [self.web_proxy, *self.proxies]:
            proxy.is_deaf = False
            proxy.__exit__(None, None, None)
        self.redis.close()


def wrong_clock(hours: int) -> dict[str, str]:
    """Python imports `sitecustomize` before anything else; this one moves the wall clock."""
    path = os.pathsep.join([str(Path(__file__).parent / "wrong_clock"), str(CHECKOUT)])
    return {"PYTHONPATH": path, "WRONG_BY_S": str(hours * 3600)}


class Api:
    """A client, by requests that are never sent twice by themselves."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._web = cluster.web
        self.name, self.said = name, ""
        self.token = f"{name}--0123456789abcdef"
        body = {"name": name, "token": self.token}
        assert self.ask("POST", "/api_tokens", ROOT_KEY, json=body) == OK

    def ask(self, method: str, path: str, token: str = "", **options: Any) -> str:
        try:
            answer = self._web.call(
                method, path, token or self.token, timeout=ASK_TIMEOUT_S, **options
            )
        except requests.ConnectionError as error:
            return FAILED if "refused" in str(error) else UNKNOWN
        except requests.RequestException:
            return UNKNOWN
        if answer.status_code < 300:
            return OK
        self.said = answer.text
        return FAILED if answer.status_code < 500 else UNKNOWN


class Subscriber:
    """`failing` of its answers are errors. Each life has a credential of its own, by which its
    requests are known."""

    def __init__(
        self, cluster: Cluster, name: str, *, failing: float = 0.0, slow_s: float = 0.0
    ) -> None:
        self._cluster = cluster
        self._history = cluster.history
        self._dice = random.Random(cluster.dice.random())
        self.failing, self._slow_s = failing, slow_s
        self._number = 0
        self.api = Api(cluster, name)
        self.receiver = Receiver()
        self.receiver.script = self._answer

    def subscribe(self, *topics: str, **fields: Any) -> Life:
        self._number += 1
        name = f"{self.api.name}.{self._number}"
        body = {"topics": topics, "callback": self.receiver.url, "uuid": name, **fields}
        began = time.monotonic()
        while (result := self.api.ask("POST", "/subscription", json=body)) != OK:
            assert result == UNKNOWN, self.api.said
            time.sleep(0.05)
        return Life(name, topics, began, time.monotonic())

    def stay(self, *topics: str, **fields: Any) -> None:
        self._history.note(self.subscribe(*topics, **fields))

    def leave(self, life: Life) -> None:
        leaving = time.monotonic()
        while self.api.ask("DELETE", "/subscriber") not in (OK, FAILED):  # 404: it was done
            time.sleep(0.05)
        self._history.note(
            Life(life.name, life.topics, life.subscribing, life.subscribed,
                 leaving, time.monotonic())
        )  # fmt: skip

    def _answer(self, delivery: Delivery) -> Answer:
        status = 500 if self._dice.random() < self.failing else 200
        time.sleep(self._slow_s)  # it is slow
        first, last = delivery.sequence
        dropped = delivery.headers.get("routemaster-dropped", "")
        self._history.note(
            Request(
                delivery.user.removesuffix(":x"), delivery.bid, delivery.lane, first, last,
                tuple(event["url"].removeprefix("https://e.example/") for event in delivery.events),
                status, delivery.arrived_s, time.monotonic(),
                tuple((int(a), int(b)) for a, b in (r.split("-") for r in dropped.split(", ") if r))
            )
        )  # fmt: skip
        return Answer(status)


class Publisher(threading.Thread):
    """Publishes a few events at a time until it is told to stop; every other publish can be
    repeated, and is, until it is known to have been done."""

    def __init__(self, cluster: Cluster, topic: str, pause_s: float = 0.03) -> None:
        super().__init__(name=f"publisher {topic}")
        self._history = cluster.history
        self._dice = random.Random(cluster.dice.random())
        self._api = Api(cluster, f"publisher_{topic}")
        self.topic, self._pause_s = topic, pause_s
        self._stop_now = threading.Event()
        self._number = 0

    def run(self) -> None:
        while not self._stop_now.wait(self._pause_s):
            self.publish(self._dice.randint(1, 5))

    def end(self) -> None:
        self._stop_now.set()
        self.join()

    def publish(self, count: int) -> str:
        facet = self._dice.choice([None, None, "a", "b"])
        names = [f"{self.topic}/{self._number + n}" for n in range(count)]
        self._number += count
        body = [
            {"type": "noop", "url": f"https://e.example/{name}", "timestamp": 1, "facet": facet}
            for name in names
        ]
        key = names[0].replace("/", "-") if self._dice.random() < 0.5 else ""
        began = time.monotonic()
        result = self._send(body, key)
        while key and result == UNKNOWN and not self._stop_now.wait(self._pause_s):
            result = self._send(body, key)
        self._history.note(Publish(self.topic, tuple(names), began, time.monotonic(), result))
        return result

    def _send(self, body: list[dict[str, Any]], key: str) -> str:
        headers = {"Idempotency-Key": key} if key else {}
        return self._api.ask("POST", f"/topics/{self.topic}", json=body, headers=headers)


class Traffic:
    """Two publishers and three subscribers, of which one fails now and then."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self.history = cluster, cluster.history
        self._guests: list[Subscriber] = []
        self.publishers = [Publisher(cluster, topic) for topic in ("orders", "users")]
        self.subscribers = [
            Subscriber(cluster, "steady"),
            Subscriber(cluster, "spread"),
            Subscriber(cluster, "flaky", failing=0.1),
        ]

    def join(self, name: str, *, failing: float = 0.0, slow_s: float = 0.0) -> Subscriber:
        """One more, whose coming and going is the caller's."""
        self._guests.append(Subscriber(self._cluster, name, failing=failing, slow_s=slow_s))
        return self._guests[-1]

    def __enter__(self) -> Traffic:
        steady, spread, flaky = self.subscribers
        steady.stay("orders", "users", max=10, timeout=20)
        spread.stay("orders", "users", max=3, timeout=0, concurrency=2)
        flaky.stay("users", max=5, timeout=0)
        for publisher in self.publishers:
            publisher.start()
        return self

    def __exit__(self, *_: object) -> None:
        for publisher in self.publishers:
            publisher.end()

    def close(self) -> None:
        for subscriber in [*self.subscribers, *self._guests]:
            subscriber.receiver.close()

    def flows(self, within_s: float = BOUNDS.recovery_s) -> None:
        """Returns when everybody was served anew: between two faults."""
        since = time.monotonic()
        names = {f"{subscriber.api.name}.1" for subscriber in self.subscribers}
        while {
            r.life for r in list(self.history.requests) if r.arrived > since
        } < names:  # fmt: skip
            assert time.monotonic() < since + within_s, f"not recovered in {within_s} s"
            time.sleep(0.02)


class Faulty:
    """Notes how long a fault lasted."""

    def __init__(self, cluster: Cluster, kind: str, may_repeat: bool = True) -> None:
        self._cluster, self._kind, self._may_repeat = cluster, kind, may_repeat

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self._cluster.history.note(
            Fault(self._kind, self._began, time.monotonic(), self._may_repeat)
        )

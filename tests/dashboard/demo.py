"""A bus with something to look at: several topics, subscribers that are well and unwell."""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from routemaster.bus import assemble
from routemaster.redis_server import find_servers
from routemaster.settings import Settings
from routemaster.store.series import MINUTE_MS, Entry, Flow
from tests.conftest import ROOT_KEY
from tests.e2e.receiver import Answer, Receiver
from tests.e2e.running import RunningBus
from tests.servers import RedisServer

TOPICS = ("orders", "payments", "shipments", "stock_levels", "email_bounces")
HTML = '<html><body><h1>502 Bad Gateway</h1><script>alert("not run")</script></body></html>'
TURN_S = 0.25
DAY_MINUTES = 1440


@dataclass
class Demo:
    running: RunningBus
    receivers: dict[str, Receiver]
    _stop: threading.Event = field(default_factory=threading.Event)
    _number: int = 0

    def call(self, method: str, path: str, token: str = ROOT_KEY, **options: Any) -> Any:
        answer = self.running.web.call(method, path, token, **options)
        assert answer.status_code < 300, answer.text
        return answer

    def add_client(self, name: str) -> str:
        token = f"{name}--0123456789abcdef"
        self.call("POST", "/api_tokens", json={"name": name, "token": token})
        return token

    def subscribe(self, name: str, *topics: str, **fields: Any) -> None:
        token = self.add_client(name)
        body = {"topics": topics, "callback": self.receivers[name].url, "uuid": "u"}
        self.call("POST", "/subscription", token, json=body | {"timeout": 200} | fields)

    def publish(self, count: int, dice: random.Random) -> None:
        for topic, share in zip(TOPICS, (8, 4, 3, 2, 1), strict=True):
            events = [self._event(topic, dice) for _ in range(max(1, count * share // 18))]
            self.call("POST", f"/topics/{topic}", "shop--0123456789abcdef", json=events)

    def flow(self) -> None:
        """Publishes until it is stopped, now more, now less."""
        dice = random.Random(7)
        turn = 0
        while not self._stop.wait(TURN_S):
            turn += 1
            self.publish(int(14 + 8 * math.sin(turn / 9) + 5 * dice.random()), dice)

    def stop(self) -> None:
        self._stop.set()

    def _event(self, topic: str, dice: random.Random) -> dict[str, Any]:
        self._number += 1
        kind = dice.choice(("create", "update", "update", "update", "delete"))
        event: dict[str, Any] = {
            "type": kind,
            "url": f"https://shop.example/{topic}/{self._number % 9973}",
        }
        if topic == "orders":
            event["facet"] = dice.choice(("berlin", "lisbon", "tokyo"))
            event["data"] = {"total": dice.randrange(500, 20_000)}
        return event


@contextmanager
def demo() -> Iterator[Demo]:
    redis = RedisServer(find_servers()[0], appendonly=True, appendfsync="everysec").start()
    running = RunningBus(redis, MAX_BACKOFF_MS="30000", ROUTEMASTER_REDIS_TIMEOUT="5")
    names = ("search-index", "mailer", "analytics", "warehouse", "legacy-erp")
    made = Demo(running, {name: Receiver() for name in names})
    try:
        running.start(workers=2)
        invent_a_day(redis, names)
        set_up(made)
        yield made
    finally:
        made.stop()
        running.close()
        for receiver in made.receivers.values():
            receiver.close()
        redis.close()


def set_up(made: Demo) -> None:
    made.add_client("shop")
    made.subscribe("search-index", "orders", "stock_levels", concurrency=4)
    made.subscribe("mailer", "email_*", "orders", "shipments", max=50)
    made.subscribe("analytics", "/.*/", max=200)
    made.subscribe("warehouse", "shipments", "stock_levels")
    made.subscribe("legacy-erp", "payments")
    headers = {"Content-Type": "text/html"}
    made.receivers["analytics"].script = lambda delivery: Answer(
        502 if delivery.attempt % 4 else 200, headers
    )
    made.receivers["legacy-erp"].script = lambda _: Answer(410)
    made.call("POST", "/subscribers/warehouse/pause")


def invent_a_day(redis: RedisServer, names: tuple[str, ...]) -> None:
    """The history that a bus has when it did not start a moment ago."""
    bus = assemble(
        Settings.from_env(
            {
                "ROUTEMASTER_ROOT_KEY": ROOT_KEY,
                "ROUTEMASTER_REDIS_URL": redis.socket_url,
                "ROUTEMASTER_REDIS_TIMEOUT": "10",
            }
        )
    )
    dice = random.Random(11)
    last = bus.clock.now_ms() // MINUTE_MS
    totals = {name: Flow() for name in ("", *names)}
    for minute in range(last - DAY_MINUTES, last):
        day = 1 + 0.6 * math.sin(2 * math.pi * (minute % DAY_MINUTES) / DAY_MINUTES - 1.5)
        entries = []
        for place, name in enumerate(totals):
            share = 1 if not name else (0.5, 0.4, 0.9, 0.2, 0.1)[place - 1]
            totals[name] = grown(totals[name], int(2600 * day * share), name, minute, dice)
            entries.append(Entry(name, totals[name], gauges(name, minute, day, dice)))
        bus.series.append(minute, entries)
    bus.link.close()


def grown(before: Flow, count: int, name: str, minute: int, dice: random.Random) -> Flow:
    count = int(count * dice.uniform(0.85, 1.15))
    batches = max(1, count // 30)
    failed = batches // 6 if name in ("", "analytics") and minute % 180 < 25 else 0
    slow = 3 if failed else 1
    return Flow(
        before.added + count, before.delivered + int(count * dice.uniform(0.97, 1.03)),
        before.succeeded + batches, before.failed + failed,
        before.latency_ms + batches * int(dice.uniform(230, 290) * slow), before.dropped,
    )  # fmt: skip


def gauges(name: str, minute: int, day: float, dice: random.Random) -> tuple[int, ...]:
    bad = minute % 180 < 25
    queued = int(dice.uniform(40, 90) * day) + (900 * (minute % 180) // 25 if bad else 0)
    if name:
        return queued, 1, 58 + minute % 180 if bad and name == "analytics" else 100
    used = int(2.1e6 + 3e5 * day + 600 * queued)
    return queued, 30 if bad else 1, 2, used, 3

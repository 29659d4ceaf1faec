"""Workers and subscribers as processes, and the books that must agree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from typing import Any

from bench.load import ROOT, Void
from bench.rig import PUBLISHER, STOPPED_WITHIN_S, Rig
from routemaster.domain.subscription import Subscription
from routemaster.subscribe import subscribe

ARRIVED_WITHIN_S = 300.0
LOOPBACK = [ip_network("127.0.0.0/8")]


class SinkProcess:
    def __init__(self, answer_after_ms: int = 0) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "bench.sink", str(answer_after_ms)],
            cwd=ROOT, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._child.stdout
        self.port = int(self._child.stdout.readline())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/events"

    def count(self) -> int:
        return int(self._get("/")["events"])

    def take(self, count: int) -> dict[int, int]:
        """When each event arrived, in ns; void unless each came exactly once."""
        deadline_s = time.monotonic() + ARRIVED_WITHIN_S
        while self.count() < count and time.monotonic() < deadline_s:
            time.sleep(0.05)
        arrivals = self._get("/arrivals")["arrivals"]
        found = {int(number): int(ns) for number, ns in arrivals}
        if len(arrivals) != count or len(found) != count:
            raise Void(
                f"{count} events published, {len(arrivals)} arrived, {len(found)} different ones"
            )
        return found

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
            return json.loads(answer.read())

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        if self._child.stdout:
            self._child.stdout.close()


@contextmanager
def a_sink(answer_after_ms: int = 0) -> Iterator[SinkProcess]:
    sink = SinkProcess(answer_after_ms)
    try:
        yield sink
    finally:
        sink.close()


@contextmanager
def a_worker(rig: Rig) -> Iterator[subprocess.Popen[bytes]]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ROUTEMASTER_")}
    child = subprocess.Popen(
        [sys.executable, "-m", "routemaster.worker"],
        cwd=rig.redis.directory,
        env={**kept, **rig.env(port=1, processes=1), "PYTHONPATH": str(ROOT)},
    )
    try:
        yield child
    finally:
        child.terminate()
        child.wait(STOPPED_WITHIN_S)


def follow(rig: Rig, name: str, topic: str, sink: SinkProcess, **fields: object) -> None:
    body = {"topics": [topic], "callback": sink.url, "uuid": "u", "timeout": 0, **fields}
    wanted = Subscription.parse(body, allow_http=True, allowed_networks=LOOPBACK)
    subscribe(rig.bus, name, wanted)


def claim(rig: Rig, topic: str) -> None:
    rig.bus.topics.claim(rig.bus.directory.fresh(), topic, PUBLISHER)
    rig.bus.directory.fresh()

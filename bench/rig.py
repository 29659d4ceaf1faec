"""What is measured: a Redis of its own, a bus on it, web servers before it, and its books."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from bench.load import ROOT, Void
from routemaster import bus as bus_module
from routemaster.redis_server import Server
from routemaster.settings import Settings
from routemaster.store.link import Reply
from tests.busses import follow, give_token, token_of
from tests.servers import RedisServer, free_port

PUBLISHER = "bench"
ROOT_KEY = "the-root-key-of-the-benchmark-0123456789"
PRODUCT, BARE = "routemaster.web", "bench.bare"
READY_WITHIN_S = 30.0
STOPPED_WITHIN_S = 15.0
PURGED_AT_ONCE = 10_000
LETTERS = str.maketrans("0123456789", "abcdefghij")


class Rig:
    """A bus whose topics have a known number of subscribers."""

    def __init__(self, server: Server, appendonly: bool = False, exports: bool = False) -> None:
        self._exports = exports
        options = {"appendfsync": "everysec"} if appendonly else {}
        self.redis = RedisServer(server, appendonly=appendonly, **options).start()
        self.bus = bus_module.assemble(Settings.from_env(self.env(port=1, processes=1)))
        self._followed: set[str] = set()
        give_token(self.bus, PUBLISHER)

    def __enter__(self) -> Rig:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.bus.link.close()
        self.redis.close()

    def env(self, port: int, processes: int) -> dict[str, str]:
        return {
            "PORT": str(port),
            "ROUTEMASTER_ROOT_KEY": ROOT_KEY,
            "ROUTEMASTER_REDIS_URL": self.redis.socket_url,
            "ROUTEMASTER_WEB_PROCESSES": str(processes),
            "ROUTEMASTER_LOG_LEVEL": "error",
            # Millions of events are queued in one go here, to be measured and not delivered.
            "ROUTEMASTER_REDIS_TIMEOUT": "30",
            # Else it would run in the midst of a measurement, or not, by the minute.
            "ROUTEMASTER_EXPORT_URL": str(self.export_folder) if self._exports else "none",
            "ROUTEMASTER_EXPORT_INTERVAL": "86400",
        }

    @property
    def export_folder(self) -> Path:
        return Path(self.redis.directory) / "export"

    def topic(self, subscribers: int, max_events: int = 100) -> str:
        """A topic with that many subscribers, whose batches hold that many events."""
        name = f"to_{spelled(subscribers)}_by_{spelled(max_events)}"
        if name not in self._followed:
            for number in range(subscribers):
                follow(self.bus, f"{name}-{number}", name, max=max_events)
            # Claims the topic, so that no measured publish has to.
            self.bus.topics.claim(self.bus.directory.fresh(), name, PUBLISHER)
            self.bus.directory.fresh()
            self._followed.add(name)
        return name

    def add_strangers(self, count: int) -> None:
        for number in range(count):
            follow(self.bus, f"stranger-{number}", f"strange_{spelled(number)}")
        self.bus.directory.fresh()

    def purge(self) -> None:
        """Nothing is queued any more; tokens, subscriptions and counters stay."""
        k = self.bus.keys
        # Named after the prefixes that publish.lua is given.
        prefixes = (k.lane_prefix, k.lane_batches_prefix, k.batch_prefix, k.lanes_prefix)
        self.bus.link.call(
            "DEL", k.event_gauges, k.batch_gauges, k.scheduled("main"), k.index("main")
        )
        for prefix in prefixes:
            for keys in self._scan(prefix + "*"):
                self.bus.link.call("DEL", *keys)

    def _scan(self, pattern: str) -> Iterator[list[bytes]]:
        cursor: Reply = b"0"
        while True:
            cursor, keys = self.bus.link.call(
                "SCAN", cursor, "MATCH", pattern, "COUNT", PURGED_AT_ONCE
            )
            if keys:
                yield keys
            if cursor == b"0":
                return

    def published(self, topic: str) -> int:
        counted = self.bus.link.call(
            "HGET", self.bus.keys.counters, f"events.published,topic={topic}"
        )
        return int(counted or 0)

    @contextmanager
    def audited(self, topic: str) -> Iterator[list[int]]:
        """Yields a list to append the numbers of accepted events to; the bus must agree."""
        before = self.published(topic)
        accepted: list[int] = []
        yield accepted
        counted = self.published(topic) - before
        if counted != sum(accepted):
            raise Void(f"{topic}: {sum(accepted)} events accepted, {counted} counted by the bus")

    def info(self, section: str) -> dict[str, str]:
        text = self.bus.link.call("INFO", section).decode()
        lines = (line.partition(":") for line in text.splitlines() if ":" in line)
        return {name: value for name, _, value in lines}

    def script_us(self) -> int:
        """Microseconds that Redis has spent in scripts, their commands included."""
        row = self.info("commandstats").get("cmdstat_evalsha", "")
        fields = dict(field.split("=") for field in row.split(",") if field)
        return int(fields.get("usec", 0))

    def used_bytes(self) -> int:
        return int(self.info("memory")["used_memory"])

    @contextmanager
    def web(self, module: str, processes: int) -> Iterator[int]:
        """Runs a web server, yields its port."""
        port = free_port()
        kept = {k: v for k, v in os.environ.items() if not k.startswith("ROUTEMASTER_")}
        child = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=self.redis.directory,  # not ours: there may be a .env
            env={**kept, **self.env(port, processes), "PYTHONPATH": str(ROOT)},
        )
        try:
            wait_for(child, port)
            yield port
        finally:
            child.terminate()
            try:
                child.wait(STOPPED_WITHIN_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def spelled(number: int) -> str:
    """Topics have no digits in their names."""
    return str(number).translate(LETTERS)


def basic() -> str:
    return "Basic " + base64.b64encode(f"{token_of(PUBLISHER)}:x".encode()).decode()


def wait_for(child: subprocess.Popen[bytes], port: int) -> None:
    deadline_s = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline_s and child.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return
        except urllib.error.HTTPError as error:
            error.close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("the web server did not start")

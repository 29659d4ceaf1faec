"""The bus as the Procfile runs it: a web process, and any number of workers."""

from __future__ import annotations

import os
import random
import shutil
import signal
import string
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Protocol

from tests.conftest import ROOT_KEY
from tests.integration.processes import CHECKOUT, PATIENCE_S, WebProcess, eventually
from tests.servers import RedisServer

HOUR_MS = 3_600_000


class WorkerProcess:
    """`python -m routemaster.worker` in a folder of its own, so that no .env is read."""

    def __init__(self, redis_url: str, **env: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="rm-"))
        inherited = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONUNBUFFERED": "1",
            "ROUTEMASTER_ROOT_KEY": ROOT_KEY,
            "ROUTEMASTER_REDIS_URL": redis_url,
        }
        with self._log_path.open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "routemaster.worker"],
                cwd=self._folder, env=inherited | env, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log,
            )  # fmt: skip

    @property
    def _log_path(self) -> Path:
        return self._folder / "log"

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def has_ended(self) -> bool:
        return self._child.poll() is not None

    def log(self) -> str:
        return self._log_path.read_text()

    def wait_for_log(self, words: str) -> WorkerProcess:
        eventually(lambda: words in self.log() or self.has_ended, self.log)
        assert words in self.log(), self.log()
        return self

    def wait_until_up(self) -> WorkerProcess:
        return self.wait_for_log("working slots=")

    def send(self, number: int) -> None:
        self._child.send_signal(number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        return self._child.wait(PATIENCE_S)

    def cpu_s(self) -> float:
        """Of all its threads, since it began; Linux only."""
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        if not self.has_ended:
            self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


class HasUrl(Protocol):
    @property
    def url(self) -> str: ...


class Client:
    def __init__(self, web: WebProcess, name: str) -> None:
        self._web = web
        self.name = name
        self.token = f"{name}--0123456789abcdef"
        self._call("POST", "/api_tokens", ROOT_KEY, json={"name": name, "token": self.token})

    def subscribe(self, receiver: HasUrl, *topics: str, **fields: Any) -> None:
        body = {"topics": topics, "callback": receiver.url, "uuid": f"uuid-of-{self.name}"}
        self._call("POST", "/subscription", self.token, json=body | {"timeout": 0} | fields)

    def pause(self) -> None:
        self._call("POST", "/subscriber/pause", self.token)

    def resume(self) -> None:
        self._call("POST", "/subscriber/resume", self.token)

    def unsubscribe(self) -> None:
        self._call("DELETE", "/subscriber", self.token)

    def publish(self, topic: str, *events: dict[str, Any]) -> None:
        self._call("POST", f"/topics/{topic}", self.token, json=list(events))

    def delete_topic(self, topic: str) -> None:
        self._call("DELETE", f"/topics/{topic}", self.token)

    def subscription(self) -> dict[str, Any]:
        [row] = self._web.call("GET", "/subscribers", self.token).json()
        return dict(row)

    def operations(self, query: str = "") -> list[dict[str, Any]]:
        found = self._web.call("GET", f"/subscriber/operations{query}", self.token).json()
        return list(found["operations"])

    def operation(self, bid: str) -> dict[str, Any]:
        return dict(self._web.call("GET", f"/operations/{bid}", self.token).json())

    def redeliver(self, bid: str) -> None:
        self._call("POST", f"/operations/{bid}/redeliver", self.token)

    def _call(self, method: str, path: str, token: str, **options: Any) -> None:
        answer = self._web.call(method, path, token, **options)
        assert answer.status_code in (201, 202, 204), answer.text


class RunningBus:
    def __init__(self, redis: RedisServer, **env: str) -> None:
        self.redis = redis
        self.env = env
        self.web = WebProcess(redis.url, ROUTEMASTER_WEB_PROCESSES="1", **env).launch()
        self.workers: list[WorkerProcess] = []

    def start(self, workers: int = 0) -> RunningBus:
        started = [self.launch_worker() for _ in range(workers)]
        self.web.wait_until_up()
        for worker in started:
            worker.wait_until_up()
        return self

    def launch_worker(self, **env: str) -> WorkerProcess:
        self.workers.append(WorkerProcess(self.redis.url, **self.env, **env))
        return self.workers[-1]

    def start_worker(self, **env: str) -> WorkerProcess:
        return self.launch_worker(**env).wait_until_up()

    def client(self, kind: str = "client") -> Client:
        """Whoever asks gets another one: tests share a bus, and must not meet there."""
        return Client(self.web, unique(kind))

    def close_workers(self) -> None:
        while self.workers:
            self.workers.pop().close()

    def close(self) -> None:
        self.close_workers()
        self.web.close()


def unique(kind: str) -> str:
    """A name for clients and topics."""
    return f"{kind}_{''.join(random.SystemRandom().choices(string.ascii_lowercase, k=12))}"


def event(number: int, **fields: Any) -> dict[str, Any]:
    return {"type": "update", "url": f"https://pub.example/{number}", "timestamp": number} | fields


def events(first: int, last: int, **fields: Any) -> list[dict[str, Any]]:
    return [event(number, **fields) for number in range(first, last + 1)]

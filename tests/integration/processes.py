"""Real web processes, as `make start` runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests

from tests.conftest import ROOT_KEY
from tests.servers import free_port

CHECKOUT = Path(__file__).resolve().parents[2]
# How long anything may take that should take a moment; only a hang ever reaches it.
PATIENCE_S = 20
REQUEST_TIMEOUT_S = 5


class WebProcess:
    """`python -m routemaster.web` in a folder of its own, so that no .env is read."""

    def __init__(self, redis_url: str, **env: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rm-"))
        self.port = free_port()
        self._env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONUNBUFFERED": "1",
            "PORT": str(self.port),
            "ROUTEMASTER_ROOT_KEY": ROOT_KEY,
            "ROUTEMASTER_REDIS_URL": redis_url,
            **env,
        }
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log_path(self) -> Path:
        return self.folder / "log"

    def log(self) -> str:
        return self.log_path.read_text()

    def launch(self) -> WebProcess:
        assert self._child is None, "started already"
        with self.log_path.open("ab") as log:
            command = [sys.executable, "-m", "routemaster.web"]
            self._child = subprocess.Popen(
                command, cwd=self.folder, env=self._env, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log,
            )  # fmt: skip
        return self

    def start(self) -> WebProcess:
        self.launch()
        return self.wait_until_up()

    def wait_until_up(self) -> WebProcess:
        eventually(lambda: self._answers() or self._has_ended(), self.log)
        assert not self._has_ended(), self.log()
        return self

    def ask_to_end(self) -> None:
        assert self._child is not None
        self._child.terminate()

    def stop(self) -> int:
        self.ask_to_end()
        return self.wait()

    def wait(self) -> int:
        assert self._child is not None
        code = self._child.wait(PATIENCE_S)
        self._child = None
        return code

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.wait(PATIENCE_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    def workers(self) -> list[int]:
        """Process ids of those that answer requests; Linux only."""
        assert self._child is not None
        pid = self._child.pid
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return sorted(int(word) for word in text.split())

    def call(self, method: str, path: str, token: str | None = None, **options: Any) -> Any:
        options.setdefault("timeout", REQUEST_TIMEOUT_S)
        auth = (token, "") if token else None
        return requests.request(method, self.url + path, auth=auth, **options)

    def publish(self, token: str, topic: str, event: object, **options: Any) -> Any:
        return self.call("POST", f"/topics/{topic}", token, json=event, **options)

    def _answers(self) -> bool:
        try:
            return bool(self.call("GET", "/health/ping").status_code == 200)
        except requests.RequestException:
            return False

    def _has_ended(self) -> bool:
        return self._child is not None and self._child.poll() is not None


def eventually(is_so: Callable[[], Any], explain: Callable[[], str] = str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline_s, explain()
        time.sleep(0.02)

"""`make start` for tests: the real processes in a folder of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from routemaster.redis_address import socket_path
from tests.servers import free_port

ROOT = Path(__file__).resolve().parents[1]
WITHIN_S = 30


class Bus:
    """`python -m routemaster.start` in an empty folder, its output in a file."""

    def __init__(self, folder: Path, command: tuple[str, ...] = (), **env: str | None) -> None:
        self.port = free_port()
        self.output = folder / "output.txt"
        self.socket = socket_path(folder / "var")
        self.marker = f"ROUTEMASTER_DATA_DIR={folder / 'var'}"
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("ROUTEMASTER_")}
        given: dict[str, str | None] = {**inherited, "PYTHONPATH": str(ROOT)}
        given |= {"PORT": str(self.port), "ROUTEMASTER_DATA_DIR": str(folder / "var")}
        given |= env
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                command or (sys.executable, "-m", "routemaster.start"),
                cwd=folder,
                env={name: value for name, value in given.items() if value is not None},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def health(self) -> object:
        """The answer to GET /health as soon as there is one."""
        deadline_s = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline_s and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health") as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                error.close()  # Redis may be a moment later than the web
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError(f"no answer from /health:\n{self.output.read_text()}")

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(WITHIN_S)

    def remaining(self) -> list[str]:
        """Our processes that still run, whoever their parent is by now."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environ = (folder / "environ").read_bytes().split(b"\0")
                command = (folder / "cmdline").read_text().replace("\0", " ")
                # Redis writes its title over its environment, and shows the socket there.
                if self.marker.encode() in environ or str(self.socket) in command:
                    found.append(command)
            except OSError:
                continue  # ended meanwhile, or another user's
        return found


@contextmanager
def bus(folder: Path, command: tuple[str, ...] = (), **env: str | None):
    it = Bus(folder, command, **env)
    try:
        yield it
    finally:
        if it.process.poll() is None:
            it.stop(signal.SIGTERM)

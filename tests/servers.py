"""Real Redis servers for tests, each in a folder of its own."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import redis

from routemaster.redis_server import Server

READY_WITHIN_S = 20


class RedisServer:
    """On a unix socket and a TCP port, both of which stay the same over restarts.

    A test that stops or kills its server makes one itself, and `close()`s it. With `appendonly`
    every write is on disk before it is answered, so that a restart finds it.
    """

    def __init__(self, server: Server, *, appendonly: bool = False, **options: str) -> None:
        self.server = server
        # Not pytest's tmp_path: a socket's path may have no more than 104 bytes.
        self.directory = Path(tempfile.mkdtemp(prefix="rm-"))
        self.port = free_port()
        self._options = {"appendonly": "yes" if appendonly else "no"}
        self._options |= {name.replace("_", "-"): value for name, value in options.items()}
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def socket_path(self) -> Path:
        return self.directory / "redis.sock"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket_url(self) -> str:
        return f"unix://{quote(str(self.socket_path))}"

    @property
    def pid(self) -> int:
        assert self._child is not None, "not started"
        return self._child.pid

    def start(self) -> RedisServer:
        assert self._child is None, "started already"
        self._child = subprocess.Popen(self._command(), stdin=subprocess.DEVNULL)
        self._wait_until_ready()
        return self

    def stop(self) -> None:
        self._end(subprocess.Popen.terminate)

    def kill(self) -> None:
        self._end(subprocess.Popen.kill)

    def restart(self) -> RedisServer:
        self.stop()
        return self.start()

    def reset(self) -> None:
        """No data and no memory limit left from the test before."""
        with self.client() as client:
            client.flushall()
            client.config_set("maxmemory", "0")

    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.socket_path), socket_timeout=10)

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _end(self, signal_it) -> None:
        if self._child is None:
            return
        signal_it(self._child)
        self._child.wait(READY_WITHIN_S)
        self._child = None

    def _command(self) -> list[str]:
        options = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "unixsocket": str(self.socket_path),
            "dir": str(self.directory),
            "logfile": str(self.directory / "redis.log"),
            "save": "",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            "enable-debug-command": "yes",
        }
        words = [w for k, v in (options | self._options).items() for w in (f"--{k}", v)]
        return [str(self.server.path), *words]

    def _wait_until_ready(self) -> None:
        assert self._child is not None
        deadline_s = time.monotonic() + READY_WITHIN_S
        with self.client() as client:
            while time.monotonic() < deadline_s and self._child.poll() is None:
                try:
                    client.ping()
                    return
                except redis.RedisError:
                    time.sleep(0.01)
        log = self.directory / "redis.log"
        raise AssertionError(f"{self.server} did not start:\n{log.read_text()}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port

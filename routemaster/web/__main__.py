"""The web process: `python -m routemaster.web`, gunicorn with threads, one core per process."""

from __future__ import annotations

import logging
import os
from collections import Counter
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication

from routemaster import bus as bus_module
from routemaster import checks, clients, log, reporter
from routemaster.bus import Bus
from routemaster.dotenv import read_settings
from routemaster.errors import StoreUnavailable
from routemaster.settings import Settings
from routemaster.web import create_app

# honcho kills after 5 s what has not ended by itself.
GRACE_S = 4
KEEP_ALIVE_S = 75


class WebServer(BaseApplication):  # type: ignore[misc]  # gunicorn has no type hints
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        for name, value in options(self._settings).items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        """Runs in each process after the fork: connections are never shared."""
        return create_app(bus_module.assemble(self._settings))


def options(settings: Settings) -> dict[str, Any]:
    return {
        "bind": address(settings),
        "workers": settings.web_processes,
        "worker_class": "routemaster.web.threads.BoundedThreadWorker",
        "threads": settings.web_threads,
        "worker_connections": 1000,
        "keepalive": KEEP_ALIVE_S,
        "graceful_timeout": GRACE_S,
        "timeout": 30,
        "pre_fork": choose_core,
        "post_fork": pin,
        "proc_name": "routemaster-web",
        # We decide ourselves whose forwarded headers to believe (tls.py).
        "forwarded_allow_ips": "",
        "secure_scheme_headers": {},
        "logger_class": "gunicorn.glogging.Logger",
        "loglevel": "warning",
        "control_socket_disable": True,
    }


def address(settings: Settings) -> str:
    host = f"[{settings.bind}]" if ":" in settings.bind else settings.bind
    return f"{host}:{settings.port}"


def choose_core(server: Any, worker: Any) -> None:
    """The core that fewest siblings have, so that a process that replaces a dead one gets the dead
    one's. In the parent: a sibling forked a moment ago may not have pinned itself yet."""
    if hasattr(os, "sched_getaffinity"):
        taken = Counter(sibling.core for sibling in server.WORKERS.values())
        worker.core = min(sorted(os.sched_getaffinity(0)), key=lambda core: taken[core])


def pin(server: Any, worker: Any) -> None:
    """One core per process: threads of one interpreter on two cores fight over its lock, which
    halves their rate."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {worker.core})


def seed_clients(bus: Bus) -> None:
    # A full Redis takes no new token; that must not stop the bus, which would stop the workers
    # that drain it.
    try:
        clients.seed(bus, bus.settings.clients)
    except StoreUnavailable as error:
        logging.getLogger("routemaster.web").error("clients not seeded reason=%s", error.reason)


def main() -> None:
    settings = read_settings()
    log.configure(settings.log_level, "web")
    reporter.install(settings, "web")
    bus = bus_module.assemble(settings)
    checks.wait_for_redis(bus)
    seed_clients(bus)
    bus.link.close()
    logging.getLogger("routemaster.web").info(
        "listening address=http://%s processes=%s threads=%s",
        address(settings), settings.web_processes, settings.web_threads,
    )  # fmt: skip
    WebServer(settings).run()


if __name__ == "__main__":
    main()

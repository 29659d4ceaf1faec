from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from flask import Blueprint, Response

from routemaster.bus import Bus
from routemaster.checks import parse_info
from routemaster.domain.job import Job
from routemaster.errors import Forbidden, InvalidInput
from routemaster.metrics.gather import ALIVE_MS, jobs
from routemaster.metrics.traffic import Moment
from routemaster.store.jobs import JobQueue
from routemaster.web.dashboard import formats
from routemaster.web.dashboard.live import Live
from routemaster.web.dashboard.pages import Pages
from routemaster.web.dashboard.sessions import Sessions

MOST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Worker:
    name: str
    silent_ms: int
    holds: int

    @property
    def is_alive(self) -> bool:
        return self.silent_ms < ALIVE_MS


@dataclass(frozen=True, slots=True)
class Due:
    name: str
    at_ms: int


def add(routes: Blueprint, bus: Bus, sessions: Sessions, pages: Pages, live: Live) -> None:
    @routes.get("/workers")
    def workers() -> Response:
        session = sessions.current()
        if not session.identity.is_root:
            raise Forbidden("Workers and queues are for the holder of the root key.")
        now = live.now()
        aside = [one for queue in (bus.main, bus.aux) for one in queue.quarantined()]
        return pages.page(
            "workers.html", session,
            now=now, workers=workers_of(now, held(bus))[:MOST_SHOWN],
            queues={queue.name: counts(bus, queue) for queue in (bus.main, bus.aux)},
            aside=[(one, name_of(one.job)) for one in aside[:MOST_SHOWN]],
            more_aside=max(0, len(aside) - MOST_SHOWN),
            plan=plan(bus), redis=redis(bus), settings=bus.settings,
        )  # fmt: skip


def held(bus: Bus) -> Counter[str]:
    """Jobs that each worker has in its hands: at most its slots, twenty-one times over."""
    return Counter(bus.main.lessees() + bus.aux.lessees())


def workers_of(now: Moment, holds: Counter[str]) -> list[Worker]:
    found = [
        Worker(name, max(0, now.now_ms - beat), holds[name]) for name, beat in now.workers.items()
    ]
    return sorted(found, key=lambda worker: (not worker.is_alive, worker.name))


def counts(bus: Bus, queue: JobQueue) -> dict[str, int]:
    return {dict(sample.tags)["state"]: int(sample.value) for sample in jobs(bus, queue)}


def plan(bus: Bus) -> list[Due]:
    """When the housekeeping jobs run next."""
    flat = bus.link.call("ZRANGE", bus.keys.scheduled("aux"), 0, MOST_SHOWN - 1, "WITHSCORES")
    return [
        Due(name_of(job), int(at)) for job, at in zip(flat[::2], flat[1::2], strict=True)
    ]  # fmt: skip


def name_of(packed: bytes) -> str:
    try:
        job = Job.load(packed)
    except InvalidInput:
        return repr(packed)
    return " ".join([job.name, *map(str, job.args)])


def redis(bus: Bus) -> Sequence[tuple[str, str]]:
    info = parse_info(bus.link.call("INFO"))
    is_logged = info.get("aof_enabled") == "1"
    return [
        ("Version", info.get("redis_version", "unknown")),
        ("Up for", formats.age(int(info.get("uptime_in_seconds", 0)))),
        ("Append-only file", "on" if is_logged else "off: a crash loses events"),
        ("Clients", f"{int(info.get('connected_clients', 0)):,}"),
        ("Commands", f"{int(info.get('instantaneous_ops_per_sec', 0)):,} a second"),
    ]

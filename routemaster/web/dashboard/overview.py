from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flask import Blueprint, Response, request

from routemaster.bus import Bus
from routemaster.metrics.memory import Memory, marks_of
from routemaster.metrics.traffic import Moment
from routemaster.store.series import WHOLE_BUS
from routemaster.web.dashboard import formats, history
from routemaster.web.dashboard.charts import WINDOWS, Frame, window_named
from routemaster.web.dashboard.live import Live
from routemaster.web.dashboard.numbers import numbers_of
from routemaster.web.dashboard.pages import Pages
from routemaster.web.dashboard.sessions import Sessions

# Longer than a batch usually waits.
LATE_S = 60
MOST_WORRIES = 8
LOW_HEALTH = 50


@dataclass(frozen=True, slots=True)
class Worry:
    """What an operator should look at; `name` is the subscriber's, '' the whole bus's."""

    name: str
    text: str
    is_grave: bool


def add(routes: Blueprint, bus: Bus, sessions: Sessions, pages: Pages, live: Live) -> None:
    @routes.get("")
    def overview() -> Response:
        session = sessions.current()
        identity = session.identity
        now = live.now()
        names = [name for name in now.subscribers if identity.is_root or name == identity.name]
        series = WHOLE_BUS if identity.is_root else identity.name
        window = window_named(request.args.get("window", ""))
        rows = bus.series.read([series], window.rows)[series]
        last = None if identity.is_root else bus.series.last_totals(names).get(series)
        pace = live.pace(names, list(now.published) if identity.is_root else [])
        draw = history.of_bus if identity.is_root else history.of_subscriber
        found = worries(bus, now, names, identity.is_root)
        return pages.page(
            "overview.html", session,
            numbers=numbers_of(now, names, pace, rows, identity.is_root, last),
            charts=draw(Frame(window, now.now_ms), rows),
            windows=WINDOWS, window=window, now=now,
            high_bytes=marks_of(now.memory.max_bytes, bus.settings.redis_min_free_bytes).high_bytes,
            worries=found[:MOST_WORRIES], more_worries=max(0, len(found) - MOST_WORRIES),
            subscribed=len(names), health=now.subscribers[names[0]].health if names else None,
        )  # fmt: skip


def worries(bus: Bus, now: Moment, names: Sequence[str], is_root: bool) -> list[Worry]:
    found = []
    if is_root:
        found += worries_of_bus(bus, now.memory, now.alive)
    for name in names:
        standing = now.subscribers[name]
        if standing.state == "disabled":
            found.append(Worry(name, "is disabled: its callback answered 410", True))
        elif standing.state == "paused" and standing.queued:
            held = formats.count(standing.queued)
            found.append(Worry(name, f"is paused, and {held} events wait", False))
        elif standing.health < LOW_HEALTH:
            found.append(Worry(name, f"fails: {standing.health} of 100 health points", True))
        elif standing.state == "active" and now.waits_s([name]) >= LATE_S:
            waits = formats.duration(1000 * now.waits_s([name]))
            found.append(Worry(name, f"is behind: its oldest event waits for {waits}", False))
    return sorted(found, key=lambda worry: not worry.is_grave)


def worries_of_bus(bus: Bus, memory: Memory, workers: int) -> list[Worry]:
    found = []
    if not workers:
        found.append(Worry("", "No worker is running: nothing is delivered.", True))
    marks = marks_of(memory.max_bytes, bus.settings.redis_min_free_bytes)
    if memory.used_bytes > marks.high_bytes:
        text = "Redis is above its high mark: the oldest events are being dropped."
        found.append(Worry("", text, True))
    return found

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flask import Blueprint, Response

from routemaster.bus import Bus
from routemaster.metrics.traffic import Moment
from routemaster.store.series import Flow, Minute
from routemaster.store.traffic import Standing
from routemaster.web.dashboard.charts import WINDOWS, Frame, path
from routemaster.web.dashboard.history import HEALTH
from routemaster.web.dashboard.listing import Key, listing
from routemaster.web.dashboard.live import Live
from routemaster.web.dashboard.numbers import Numbers, numbers_of
from routemaster.web.dashboard.pages import Pages
from routemaster.web.dashboard.sessions import Sessions

FULL_HEALTH = 100.0
HOUR = WINDOWS[0]


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    standing: Standing
    numbers: Numbers
    health_path: str  # of the last hour


def add(routes: Blueprint, bus: Bus, sessions: Sessions, pages: Pages, live: Live) -> None:
    @routes.get("/subscribers")
    def subscribers() -> Response:
        session = sessions.current()
        identity = session.identity
        now = live.now()
        visible = [n for n in now.subscribers if identity.is_root or n == identity.name]
        chosen = listing(visible, sorts(now))
        series = bus.series.read(chosen.names, HOUR.rows)
        last = bus.series.last_totals(chosen.names)
        rows = [row(now, live, name, series[name], last.get(name)) for name in chosen.names]
        return pages.page("subscribers.html", session, listing=chosen, rows=rows)


def sorts(now: Moment) -> dict[str, Key]:
    standings = now.subscribers
    return {
        "name": str,
        "state": lambda name: standings[name].state == "active",
        "health": lambda name: (standings[name].state == "active", standings[name].health),
        "waiting": lambda name: -standings[name].queued,
        "oldest": lambda name: now.oldest_ms.get(name, now.now_ms),
    }


def row(now: Moment, live: Live, name: str, rows: Sequence[Minute], last: Flow | None) -> Row:
    numbers = numbers_of(now, [name], live.pace([name]), rows, is_whole=False, last=last)
    health = Frame(HOUR, now.now_ms).highest(rows, HEALTH)
    return Row(name, now.subscribers[name], numbers, path(health, FULL_HEALTH))

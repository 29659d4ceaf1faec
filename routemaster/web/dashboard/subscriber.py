from __future__ import annotations

from flask import Blueprint, Response, request

from routemaster.bus import Bus
from routemaster.store.operations import STATUSES
from routemaster.subscribe import no_subscription
from routemaster.web.dashboard import history
from routemaster.web.dashboard.actions import DONE
from routemaster.web.dashboard.charts import WINDOWS, Frame, window_named
from routemaster.web.dashboard.live import Live
from routemaster.web.dashboard.numbers import numbers_of
from routemaster.web.dashboard.operations import Histories, can_redeliver
from routemaster.web.dashboard.pages import Pages
from routemaster.web.dashboard.sessions import Sessions, visible

MOST_LANES = 50


def add(
    routes: Blueprint, bus: Bus, sessions: Sessions, pages: Pages, live: Live, histories: Histories
) -> None:
    @routes.get("/subscribers/<name>")
    def subscriber(name: str) -> Response:
        session = sessions.current()
        name = visible(session, name)
        summaries = bus.subscribers.summaries([name])
        if not summaries:
            raise no_subscription(name)
        now = live.now()
        window = window_named(request.args.get("window", ""))
        rows = bus.series.read([name], window.rows)[name]
        last = bus.series.last_totals([name]).get(name)
        lanes, more_lanes = bus.lanes.oldest(name, MOST_LANES)
        return pages.page(
            "subscriber.html", session,
            it=summaries[0],
            now=now, window=window, windows=WINDOWS,
            numbers=numbers_of(now, [name], live.pace([name]), rows, is_whole=False, last=last),
            charts=history.of_subscriber(Frame(window, now.now_ms), rows),
            lanes=lanes, more_lanes=more_lanes,
            shown=histories.shown(name), statuses=STATUSES, can_redeliver=can_redeliver,
            counts=bus.operations.counts(name),
            done=DONE.get(request.args.get("done", ""), ""),
        )  # fmt: skip

"""The dashboard: pages made on the server, which a small script refreshes."""

from __future__ import annotations

from flask import Blueprint, Response, request
from werkzeug.exceptions import HTTPException

from routemaster import errors
from routemaster.bus import Bus
from routemaster.web.dashboard import (
    actions,
    overview,
    security,
    sign_in,
    static,
    stream,
    subscriber,
    subscribers,
    topics,
    workers,
)
from routemaster.web.dashboard.live import Live
from routemaster.web.dashboard.operations import Histories
from routemaster.web.dashboard.pages import HERE, Pages
from routemaster.web.dashboard.sessions import Sessions
from routemaster.web.errors import STATUS, log
from routemaster.web.streams import Streams

LARGEST_FORM = 16 * 1024


def blueprint(bus: Bus, streams: Streams) -> Blueprint:
    routes = Blueprint("dashboard", __name__, url_prefix=HERE)
    sessions = Sessions(bus)
    pages = Pages(sessions)
    live = Live(bus)
    histories = Histories(bus)
    static.add(routes)
    sign_in.add(routes, sessions, pages)
    overview.add(routes, bus, sessions, pages, live)
    topics.add(routes, bus, sessions, pages, live)
    subscribers.add(routes, bus, sessions, pages, live)
    subscriber.add(routes, bus, sessions, pages, live, histories)
    actions.add(routes, bus, sessions, pages, histories)
    stream.add(routes, bus, sessions, pages, streams)
    workers.add(routes, bus, sessions, pages, live)
    routes.after_request(security.secured)

    @routes.before_request
    def only_small_forms() -> None:
        request.max_content_length = LARGEST_FORM

    @routes.get("/")
    def with_a_slash() -> Response:
        return sign_in.moved(HERE)

    @routes.get("/<path:_>")
    def nothing_there(_: str) -> Response:
        raise errors.NotFound("There is no such page.")

    @routes.errorhandler(errors.RoutemasterError)
    def problem(error: errors.RoutemasterError) -> Response:
        if isinstance(error, errors.Unauthenticated):
            return sign_in.to_sign_in()
        status = next(code for kind, code in STATUS.items() if isinstance(error, kind))
        if isinstance(error, errors.StoreUnavailable):
            log.warning("store unavailable reason=%s", error.reason)
            response = pages.plain("unavailable.html", status, reason=error.reason)
            response.headers["Retry-After"] = "1"
            return response
        return pages.plain("problem.html", status, status=status, text=error.error)

    @routes.errorhandler(HTTPException)
    def frameworks(error: HTTPException) -> Response:
        return pages.plain(
            "problem.html", error.code or 500, status=error.code, text=error.description
        )

    @routes.errorhandler(Exception)
    def bug(error: Exception) -> Response:
        log.exception("a bug error=%s", type(error).__name__)
        text = "Something is broken here; the web process’s log says what."
        return pages.plain("problem.html", 500, status=500, text=text)

    return routes

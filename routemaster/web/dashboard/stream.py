"""A topic's events as they are accepted: the API's stream, for who has a session."""

from __future__ import annotations

from flask import Blueprint, Response, request

from routemaster.bus import Bus
from routemaster.store.table import Table
from routemaster.web.dashboard.pages import Pages
from routemaster.web.dashboard.sessions import Session, Sessions
from routemaster.web.streams import Streams
from routemaster.web.topics import streamed

# The streams ask each second; a session is looked up less often.
LOOK_MS = 5000


def add(routes: Blueprint, bus: Bus, sessions: Sessions, pages: Pages, streams: Streams) -> None:
    @routes.get("/stream")
    def stream() -> Response:
        session = sessions.current()
        topics = sorted(bus.directory.table.topics)
        asked = request.args.get("topic", "")
        chosen = asked if asked in topics else ""
        return pages.page("stream.html", session, topics=topics, chosen=chosen)

    @routes.get("/topics/<name>/events")
    def events(name: str) -> Response:
        return streamed(bus, streams, name, Watch(bus, sessions, sessions.current()).may_read)


class Watch:
    def __init__(self, bus: Bus, sessions: Sessions, session: Session) -> None:
        self._clock = bus.clock
        self._sessions = sessions
        self._session = session
        self._good_until_ms = bus.clock.mono_ms() + LOOK_MS

    def may_read(self, table: Table) -> bool:
        if self._clock.mono_ms() < self._good_until_ms:
            return True
        self._good_until_ms = self._clock.mono_ms() + LOOK_MS
        return self._sessions.is_good(self._session, table)

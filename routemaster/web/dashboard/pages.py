"""Templates, and what every page has."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Response, request
from jinja2 import Environment, PackageLoader, StrictUndefined

from routemaster.web.dashboard import formats, static
from routemaster.web.dashboard.sessions import Session, Sessions

HERE = "/dashboard"
# What a page that refreshes itself asks for: numbers without what changes once a minute.
PART_HEADER = "X-Routemaster-Part"


@dataclass(frozen=True, slots=True)
class Tab:
    path: str
    text: str
    is_for_clients: bool = True


TABS = (
    Tab(HERE, "Overview"),
    Tab(f"{HERE}/topics", "Topics"),
    Tab(f"{HERE}/subscribers", "Subscribers"),
    Tab(f"{HERE}/stream", "Live events"),
    Tab(f"{HERE}/workers", "Workers", is_for_clients=False),
)


class Pages:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._templates = Environment(
            loader=PackageLoader(__package__, "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(formats.FILTERS)
        self._templates.globals.update(here=HERE, static=static.address)

    def page(
        self, template: str, session: Session, /, status: int = 200, **values: object
    ) -> Response:
        """For somebody who is signed in."""
        tabs = [tab for tab in TABS if session.identity.is_root or tab.is_for_clients]
        return self.plain(
            template, status,
            identity=session.identity,
            form_token=self._sessions.form_token(session.id),
            tabs=tabs,
            path=request.path,
            is_part=PART_HEADER in request.headers,
            **values,
        )  # fmt: skip

    def plain(self, template: str, status: int = 200, /, **values: object) -> Response:
        text = self._templates.get_template(template).render(**values)
        return Response(text, status, content_type="text/html; charset=utf-8")

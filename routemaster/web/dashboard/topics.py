from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from flask import Blueprint, Response

from routemaster.bus import Bus
from routemaster.store.table import Table
from routemaster.store.topics import TopicSummary
from routemaster.web.dashboard.listing import listing
from routemaster.web.dashboard.live import Live
from routemaster.web.dashboard.pages import Pages
from routemaster.web.dashboard.sessions import Sessions


@dataclass(frozen=True, slots=True)
class Row:
    topic: TopicSummary
    per_s: float | None
    subscribers: int
    last_type: str
    last_url: str
    last_ms: int | None


def add(routes: Blueprint, bus: Bus, sessions: Sessions, pages: Pages, live: Live) -> None:
    @routes.get("/topics")
    def topics() -> Response:
        session = sessions.current()
        now = live.now()
        table = bus.directory.table
        chosen = listing(
            table.topics,
            {"name": str, "events": lambda name: -now.published.get(name, 0)},
        )
        rows = [
            row(topic, live.pace((), [topic.name]).published_per_s, followers(table, topic.name))
            for topic in bus.topics.summaries(chosen.names)
        ]
        return pages.page("topics.html", session, listing=chosen, rows=rows)


def followers(table: Table, name: str) -> int:
    return len(table.topics[name].routes) if name in table.topics else 0


def row(topic: TopicSummary, per_s: float | None, subscribers: int) -> Row:
    last = last_event(topic.last_event)
    when = last.get("t")
    return Row(
        topic, per_s, subscribers,
        str(last.get("type", "")), str(last.get("url", "")),
        when if isinstance(when, int) else None,
    )  # fmt: skip


def last_event(stored: bytes | None) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(stored or b"{}")
    except msgspec.DecodeError:  # Redis may hold anything
        return {}
    return found if isinstance(found, dict) else {}

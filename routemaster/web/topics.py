from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from flask import Blueprint, Response, request

from routemaster.bus import Bus
from routemaster.domain.names import parse_topic
from routemaster.publish import Publication
from routemaster.store.topics import TopicSummary
from routemaster.subscribe import delete_topic
from routemaster.web.answers import as_json, content_type, nothing, read_body
from routemaster.web.callers import Callers, credentials

ELIXIR = "routemaster-client-ex-v"


def blueprint(bus: Bus, callers: Callers) -> Blueprint:
    routes = Blueprint("topics", __name__)

    @routes.post("/topics/<name>")
    def publish(name: str) -> Response:
        stored = bus.publisher.publish(publication(request.environ, name, read_body()))
        response = Response(status=accepted_status(request.environ))
        if stored.duplicates:
            response.headers["Routemaster-Duplicates"] = str(stored.duplicates)
        return response

    @routes.get("/topics")
    def listed() -> Response:
        callers.anyone()
        names = sorted(bus.directory.table.topics)
        return as_json([shown(summary) for summary in bus.topics.summaries(names)])

    # The Go client says `/topic`.
    @routes.delete("/topic/<name>")
    @routes.delete("/topics/<name>")
    def delete(name: str) -> Response:
        identity = callers.anyone()
        delete_topic(bus, identity, parse_topic(name))
        return nothing()

    return routes


def accepted_status(environ: Mapping[str, Any]) -> int:
    """204; for the Elixir client, which takes every other status for a failure, 200."""
    return 200 if environ.get("HTTP_USER_AGENT", "").startswith(ELIXIR) else 204


def publication(environ: Mapping[str, Any], topic: str, body: bytes) -> Publication:
    return Publication(
        credentials(environ),
        topic,
        body,
        content_type(environ),
        environ.get("HTTP_IDEMPOTENCY_KEY", ""),
    )


def shown(topic: TopicSummary) -> dict[str, object]:
    return {
        "name": topic.name,
        "publisher": topic.publisher,
        "events": topic.events,
        "last_event": msgspec.Raw(topic.last_event) if topic.last_event else None,
    }

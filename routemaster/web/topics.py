from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec
from flask import Blueprint, Response, request

from routemaster.bus import Bus
from routemaster.domain.names import parse_topic
from routemaster.errors import InvalidInput, NotFound, TooMany, Unauthenticated
from routemaster.identity import Authenticator, Credentials, Identity
from routemaster.publish import Publication
from routemaster.store.table import Table
from routemaster.store.topics import TopicSummary
from routemaster.subscribe import delete_topic
from routemaster.web.answers import as_json, content_type, nothing, read_body
from routemaster.web.callers import Callers, credentials
from routemaster.web.streams import Streamed, Streams
from routemaster.web.waiting import TURN

CROWDED_S = 5

ELIXIR = "routemaster-client-ex-v"


def blueprint(bus: Bus, callers: Callers, streams: Streams) -> Blueprint:
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

    @routes.get("/topics/<name>/stream")
    def stream(name: str) -> Response:
        identity, asked = callers.anyone(), credentials(request.environ)
        return streamed(
            bus, streams, name, partial(still_known, bus.authenticator, identity, asked)
        )

    # The Go client says `/topic`.
    @routes.delete("/topic/<name>")
    @routes.delete("/topics/<name>")
    def delete(name: str) -> Response:
        identity = callers.anyone()
        delete_topic(bus, identity, parse_topic(name))
        return nothing()

    return routes


def streamed(bus: Bus, streams: Streams, name: str, may_read: Callable[[Table], bool]) -> Response:
    if parse_topic(name) not in bus.directory.table.topics:
        raise NotFound(f"there is no topic {name}")
    last = last_seen(request.headers.get("Last-Event-ID", ""))
    if streams.is_full:
        raise TooMany("too many streams are open", CROWDED_S)
    turn = request.environ.get(TURN)
    if turn is None or request.method == "HEAD":  # a server that cannot hand its socket over
        return Response(": over\n\n", content_type="text/event-stream")
    raise Streamed(name, may_read, last)


def accepted_status(environ: Mapping[str, Any]) -> int:
    """204; for the Elixir client, which takes every other status for a failure, 200."""
    return 200 if environ.get("HTTP_USER_AGENT", "").startswith(ELIXIR) else 204


def still_known(
    authenticator: Authenticator, identity: Identity, asked: Credentials, table: Table
) -> bool:
    if asked.authorization.lower().startswith("digest "):  # its nonce is good for a request only
        return identity.is_root or any(
            client.name == identity.name and client.digest_ha1 for client in table.clients.values()
        )
    try:
        return authenticator.identify(asked, table) == identity
    except Unauthenticated:
        return False


def last_seen(text: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise InvalidInput("Last-Event-ID", "must be the id of an event of this stream")
    return int(text)


def publication(environ: Mapping[str, Any], topic: str, body: bytes) -> Publication:
    return Publication(
        credentials(environ),
        topic,
        body,
        content_type(environ),
        environ.get("HTTP_IDEMPOTENCY_KEY", ""),
        environ.get("HTTP_ROUTEMASTER_REMEMBER", ""),
    )


def shown(topic: TopicSummary) -> dict[str, object]:
    return {
        "name": topic.name,
        "publisher": topic.publisher,
        "events": topic.events,
        "last_event": msgspec.Raw(topic.last_event) if topic.last_event else None,
    }

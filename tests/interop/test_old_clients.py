"""What the Ruby, Go and Elixir clients send, byte for byte, and what their listeners check.

The requests are data: `{client:x}` stands for the base64 of a client's token and `:x`."""

from __future__ import annotations

import base64
import json
import re
import socket
from collections.abc import Callable
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT_KEY
from tests.e2e.receiver import Delivery

FOLDER = Path(__file__).parent
LANGUAGES = ["ruby", "go", "elixir"]


class Connection:
    """Kept alive, so that a body which the bus left unread would spoil the next request."""

    def __init__(self, port: int, **words: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._words = words

    def send(self, row: dict[str, Any]) -> tuple[int, bytes]:
        body = self._filled(row["body"] or "").encode()
        lines = [f"{row['method']} {row['path']} HTTP/1.1", "Host: bus.example.com"]
        lines += [f"{name}: {value}" for name, value in row["headers"]]
        if row["body"] is not None:
            lines.append(f"Content-Length: {len(body)}")
        head = self._filled("\r\n".join(lines) + "\r\n\r\n").encode()
        self._socket.sendall(head + body)
        response = HTTPResponse(self._socket, method=row["method"])
        response.begin()
        return response.status, response.read()

    def close(self) -> None:
        self._socket.close()

    def _filled(self, text: str) -> str:
        text = text.replace("{topic}", self._words["topic"])

        def basic(match: re.Match[str]) -> str:
            return base64.b64encode(f"{self._words[match[1]]}{match[2]}".encode()).decode()

        return re.sub(r"\{(client|root)(:\w*)\}", basic, text)


def recorded(language: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((FOLDER / f"{language}.json").read_text())
    return rows


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_request_is_served_with_a_status_its_client_takes(bus, token, topic, language):
    connection = Connection(bus.web.port, client=token, root=ROOT_KEY, topic=topic)
    try:
        for row in recorded(language):
            status, body = connection.send(row)
            assert status in row["accepts"], (row["call"], status, body)
    finally:
        connection.close()


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_they_publish_is_delivered(bus, client, receiver, token, topic, language):
    client.subscribe([topic], receiver.url, "demo", timeout=0, max=1)
    rows = [row for row in recorded(language) if row["path"] == "/topics/{topic}" and row["body"]]
    connection = Connection(bus.web.port, client=token, root=ROOT_KEY, topic=topic)
    for row in rows:
        connection.send(row)
    connection.close()
    receiver.wait_for_events(len(rows))
    for row, delivery in zip(rows, receiver.deliveries, strict=True):
        published = json.loads(row["body"])
        [event] = delivery.events
        assert (event["type"], event["url"]) == (published["type"], published["url"])
        assert event["t"] == published.get("timestamp") or not published.get("timestamp")
        assert event.get("data") == published.get("data")


def ruby_listener(delivery: Delivery) -> int:
    """routemaster-drain: Authenticate, Parse."""
    words = re.sub(r"^Basic ", "", delivery.headers["authorization"])
    if base64.b64decode(words).decode().split(":")[0] != "demo":
        return 403
    if delivery.headers["content-type"] != "application/json":
        return 415
    complete = all(all(e.get(k) is not None for k in ("t", "type", "topic", "url"))
                   for e in delivery.events)  # fmt: skip
    return 204 if isinstance(delivery.events, list) and complete else 400


def go_listener(delivery: Delivery) -> int:
    """routemaster-client-go: BasicAuth, then JSON into ReceivedEvent, at least one."""
    scheme, _, words = delivery.headers["authorization"].partition(" ")
    user, colon, _ = base64.b64decode(words).decode().partition(":")
    if scheme.lower() != "basic" or not colon or user != "demo":
        return 401
    kinds = {"topic": str, "type": str, "url": str, "t": int}
    typed = all(isinstance(e[k], kind) for e in delivery.events for k, kind in kinds.items())
    return 200 if delivery.events and typed else 400


def elixir_listener(delivery: Delivery) -> int:
    """routemaster-client-ex: the Auth and Parser plugs, and Event.complete?."""
    scheme, _, words = delivery.headers["authorization"].partition(" ")
    if scheme != "Basic" or base64.b64decode(words, validate=True).decode().split(":")[0] != "demo":
        return 403
    if not delivery.headers["content-type"].startswith("application/json"):
        return 415
    complete = all(e.get(k) is not None for e in delivery.events
                   for k in ("type", "url", "t", "topic"))  # fmt: skip
    return 204 if complete else 400


@pytest.mark.parametrize("listener", [ruby_listener, go_listener, elixir_listener])
def test_a_delivery_satisfies_their_listeners(
    client, receiver, topic, listener: Callable[[Delivery], int]
):
    client.subscribe([topic], receiver.url, "demo", timeout=0)
    client.created(topic, "https://pub.example/1")
    client.updated(topic, "https://pub.example/2", t=0, data={"a": 1}, facet="f")
    receiver.wait_for_events(2)
    assert {listener(delivery) for delivery in receiver.deliveries} <= {200, 204}

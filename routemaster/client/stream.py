"""A topic's live stream (Server-Sent Events), connected again whenever it breaks off."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import requests
import urllib3

from routemaster.client.errors import BusError, Unavailable
from routemaster.client.http import Transport, pause_s

# The bus says something every 15 seconds; after more than two of them missing it is gone.
SILENCE_S = 40.0
CONNECT_S = 5.0
MOST_LINE = 1 << 20


@dataclass(frozen=True, slots=True)
class Live:
    """An event and its number in the topic; or, without an event, how many were missed."""

    event: dict[str, Any] | None
    number: int
    missed: int = 0


@dataclass(slots=True)
class Message:
    kind: str = "message"
    data: str = ""
    id: str = ""


def listen(http: Transport, topic: str) -> Iterator[Live]:
    last, failures = "", 0
    while True:
        try:
            headers = {"Last-Event-ID": last} if last else {}
            response = http.open(f"/topics/{topic}/stream", (CONNECT_S, SILENCE_S), headers)
            with response:
                for message in messages(lines(response)):
                    failures = 0
                    last = message.id or last
                    if message.kind == "skipped":
                        yield Live(None, int(last or 0), json.loads(message.data)["events"])
                    elif message.kind == "message":
                        yield Live(json.loads(message.data), int(last or 0))
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError):
            pass  # it is back soon, or a deploy goes on
        except BusError as problem:
            if problem.status is None or (problem.status != 429 and problem.status < 500):
                raise
        failures += 1
        if failures > 60:
            raise Unavailable(f"{http.url} does not answer", None, failures)
        time.sleep(pause_s(failures))


def lines(response: requests.Response) -> Iterator[str]:
    left = b""
    # What has come, at once; iter_content would wait for more of it.
    read = getattr(response.raw, "read1", None) or (lambda most: response.raw.read(1))
    while block := read(MOST_LINE):
        *whole, left = (left + block).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").rstrip("\r")
        if len(left) > MOST_LINE:
            raise requests.RequestException("a line does not come to its end")


def messages(lines: Iterable[str]) -> Iterator[Message]:
    message = Message()
    for line in lines:
        if not line:
            if message.data:
                yield message
            message = Message()
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                message.data += value
            elif name == "event":
                message.kind = value
            elif name == "id":
                message.id = value

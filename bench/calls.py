"""The publish script's call as the product makes it, caught once and then repeated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from routemaster.bus import Bus
from routemaster.domain.event import EventRules, parse_one_or_many
from routemaster.store.events import EventStore, uid
from routemaster.store.link import Arg, Link, Reply
from routemaster.store.scripts import Script

UID = 2  # ARGV[3] of publish.lua
TIME_MS = 1_700_000_000_000
JSON, LINES = "application/json", "application/x-ndjson"


class Catcher:
    """Stands where a Link stands."""

    call: tuple[Script, Sequence[str], list[Arg]]

    def run(self, script: Script, keys: Sequence[str], args: Sequence[Arg]) -> Reply:
        self.call = (script, keys, list(args))
        return [b"ok", 0, 0]


@dataclass(frozen=True)
class Call:
    script: Script
    keys: Sequence[str]
    args: list[Arg]

    @classmethod
    def publishing(cls, bus: Bus, topic: str, events: int) -> Call:
        """By the newest routing table."""
        rules = EventRules(bus.settings.max_event_data_bytes, bus.settings.max_bulk_events)
        parsed = parse_one_or_many(topic, body(events, JSON), rules, TIME_MS)
        table = bus.directory.fresh()
        catcher = Catcher()
        store = EventStore(cast(Link, catcher), bus.keys, bus.settings.max_lanes)
        store.publish(table, table.topics[topic], parsed)
        return cls(*catcher.call)

    def run(self, link: Link) -> bool:
        """Whether it was accepted. The id is new each time: batches are named after it."""
        args = self.args.copy()
        args[UID] = uid()
        reply: Any = link.run(self.script, self.keys, args)
        return bool(reply[0] == b"ok")


def body(events: int, kind: str) -> bytes:
    texts = [
        json.dumps(
            {
                "type": "update",
                "url": f"https://publisher.example/widgets/{number:06}",
                "timestamp": TIME_MS + number,
                "data": {"colour": "red"},
            }
        )
        for number in range(events)
    ]
    if kind == LINES:
        return "\n".join(texts).encode()
    return (texts[0] if events == 1 else f"[{','.join(texts)}]").encode()


def request(authorization: str, path: str, content: bytes, kind: str) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {authorization}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content

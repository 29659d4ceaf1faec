"""The publish script's Python side: one call stores events in every lane of their topic."""

from __future__ import annotations

import hashlib
import os
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass

from routemaster.domain.event import Accepted, Events
from routemaster.domain.lane import lane_of
from routemaster.errors import InvalidInput, KeyReused, Stale, TooMany
from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Arg, Link
from routemaster.store.packing import for_lua
from routemaster.store.table import Route, Table, Topic

KEPT_IDS_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class Stored:
    events: int
    duplicates: int


class EventStore:
    def __init__(self, link: Link, keys: Keys, max_lanes: int, max_minutes: int = 0) -> None:
        """`max_minutes` bounds what is counted for the export; 0 while nobody exports."""
        self._max_minutes = max_minutes
        self._link = link
        self._keys = keys
        self._max_lanes = max_lanes
        self._script = scripts.load().publish

    def publish(
        self,
        table: Table,
        topic: Topic,
        events: Events,
        request_id: str = "",
        body: bytes = b"",
        now_ms: int | str = "",
        kept_ms: int = KEPT_IDS_MS,
    ) -> Stored:
        """All events or none. Raises Stale when `table` is not the newest. Ids are remembered for
        `kept_ms`."""
        k = self._keys
        where = [
            k.routes, k.topic_prefix + topic.name, k.counters, k.event_gauges, k.batch_gauges,
            k.scheduled("main"), k.index("main"), k.lane_prefix, k.lane_batches_prefix,
            k.batch_prefix, k.lanes_prefix, k.ids(topic.name), k.publishes,
        ]  # fmt: skip
        args: list[Arg] = [
            str(table.version), now_ms, uid(), self._max_lanes, k.wake_channel, topic.name,
            plan(topic, events), ids(events, request_id, body, kept_ms),
            topic.publisher or "", self._max_minutes,
        ]  # fmt: skip
        args += events.fragments
        answer, *rest = self._link.run(self._script, where, args)
        if answer == b"ok":
            return Stored(*rest)
        if answer == b"stale":
            raise Stale
        if answer == b"reused":
            raise KeyReused("this Idempotency-Key was used with another body")
        raise TooMany(
            f"too many facets: {rest[0].decode()} has its most lanes ({self._max_lanes})", 60
        )


def uid() -> str:
    """20 characters, 120 random bits."""
    return urlsafe_b64encode(os.urandom(15)).decode()


def plan(topic: Topic, events: Events) -> bytes:
    """Which lane gets which events, MessagePacked; ready-made where every lane gets all."""
    if topic.packed is not None and events.is_plain:
        return topic.packed
    lanes: dict[tuple[str, str], list[int]] = {}
    for number, event in enumerate(events, 1):
        for route in targets(topic, event, number - 1):
            lane = lane_of(event.url, event.facet, route.concurrency)
            lanes.setdefault((route.subscriber, lane), []).append(number)
    routes = {route.subscriber: route for route in topic.routes}
    return for_lua(
        [
            [name, lane, routes[name].max_events, routes[name].timeout_ms, numbers]
            for (name, lane), numbers in lanes.items()
        ]
    )


def targets(topic: Topic, event: Accepted, position: int) -> Sequence[Route]:
    if event.target is None:
        return topic.routes
    chosen = [route for route in topic.routes if route.subscriber == event.target]
    if not chosen:
        raise InvalidInput("target", "must be a subscriber of this topic", position)
    return chosen


def ids(events: Events, request_id: str, body: bytes, kept_ms: int = KEPT_IDS_MS) -> bytes:
    """What the script remembers; nothing when the publisher gave no id."""
    if not request_id and not events.has_ids:
        return b""
    each = [event.id or "" for event in events]
    digest = hashlib.blake2b(body, digest_size=16).hexdigest()
    return for_lua([kept_ms, request_id, digest, each])

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgpack

from routemaster.domain.signature import new_secret
from routemaster.domain.subscription import Subscription
from routemaster.errors import Stale
from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Arg, Link
from routemaster.store.packing import for_lua
from routemaster.store.replies import number, text
from routemaster.store.table import Table

MAIN = "main"
FULL_HEALTH = 100
# A day to bring a new secret to wherever the callback runs.
SECRET_OVERLAP_MS = 24 * 3600 * 1000


@dataclass(frozen=True, slots=True)
class SubscriberSummary:
    name: str
    callback: str
    max_events: int
    timeout_ms: int
    concurrency: int
    topics: list[str]
    patterns: list[str]
    state: str
    health_points: int
    last_attempted_at_ms: int | None
    sent: int
    queued: int
    batches: int
    oldest_ms: int | None


class SubscriberStore:
    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys

    def set(self, table: Table, name: str, wanted: Subscription, now_ms: int | str = "") -> None:
        """Subscribe, or replace what was subscribed to. Raises Stale."""
        k = self._keys
        topics, created = resolve(table, name, wanted)
        where = [
            k.routes, k.changes, k.topics, k.subscribers, k.subscriber(name), k.followed(name),
            k.index(MAIN), k.instant(MAIN), k.active, k.topic_prefix, k.followers_prefix,
            k.followed_prefix, k.waiting_prefix, k.subscriber_prefix,
        ]  # fmt: skip
        args = [
            str(table.version), name,
            for_lua(settings_of(wanted)), for_lua(first_settings()),
            for_lua(topics), for_lua(created), now_ms, k.wake_channel,
        ]  # fmt: skip
        if self._link.run(scripts.load().subscriber_set, where, args) < 0:
            raise Stale
        self._until_told()

    def set_state(self, name: str, state: str, now_ms: int | str = "") -> bool:
        """active, paused or disabled; False when there is no such subscriber."""
        k = self._keys
        where = [
            k.index(MAIN), k.instant(MAIN), k.active, k.waiting_prefix, k.subscriber_prefix,
        ]  # fmt: skip
        args = [name, state, now_ms, k.wake_channel]
        is_there = bool(self._link.run(scripts.load().subscriber_state, where, args))
        self._until_told()
        return is_there

    def secret(self, name: str) -> str | None:
        found = self._link.call("HGET", self._keys.subscriber(name), "secret")
        return found.decode() if found else None

    def set_secret(self, name: str, secret: str, now_ms: int | str = "") -> bool:
        """The old one signs too for SECRET_OVERLAP_MS; False when there is no such subscriber."""
        where = [self._keys.subscriber(name)]
        args: list[Arg] = [secret, SECRET_OVERLAP_MS, now_ms]
        return bool(self._link.run(scripts.load().subscriber_secret, where, args))

    def leave(self, table: Table, name: str, topic: str) -> bool:
        """Unsubscribe from one topic; False when it was not subscribed. Raises Stale."""
        k = self._keys
        route = table.routes.get(name)
        excepted = sorted((route.excepted if route else frozenset()) | {topic})
        where = [
            k.routes, k.changes, k.subscriber(name), k.followed(name), k.followers(topic),
        ]  # fmt: skip
        args = [str(table.version), name, topic, msgpack.packb(excepted)]
        done = self._link.run(scripts.load().subscriber_leave, where, args)
        if done < 0:
            raise Stale
        return bool(done)

    def remove(self, name: str, uid: str) -> bool:
        """Unsubscribe for good; False when there is no such subscriber."""
        k = self._keys
        where = [
            k.routes, k.changes, k.subscribers, k.subscriber(name), k.followed(name),
            k.lanes(name), k.waiting(name), k.drops(name), k.index(MAIN), k.scheduled(MAIN),
            k.instant(MAIN), k.pending(MAIN), k.leases(MAIN), k.reclaims(MAIN),
            k.quarantine(MAIN), k.active, k.event_gauges, k.batch_gauges, k.counters, k.trash,
            k.lane_prefix, k.lane_batches_prefix, k.followers_prefix, k.trash_prefix,
            k.operations(name),
        ]  # fmt: skip
        args = [name, uid, k.wake_channel]
        was_there = bool(self._link.run(scripts.load().subscriber_remove, where, args))
        self._until_told()
        return was_there

    def _until_told(self) -> None:
        """Redis may write our answer first and what it says on `wake` after it, but all of it
        before it reads again: with one more answer, workers that took ahead have been told."""
        self._link.call("PING")

    def health(self, names: Sequence[str]) -> list[tuple[str, str, int, int]]:
        """Name, state, health points and failures since the last success of each that is there."""
        fields = ("state", "health_points", "failures")
        rows = self._link.many([("HMGET", self._keys.subscriber(n), *fields) for n in names])
        return [
            (name, text(state), number(points, 100), number(failures))
            for name, (state, points, failures) in zip(names, rows, strict=True)
            if state
        ]

    def summaries(self, names: Sequence[str]) -> list[SubscriberSummary]:
        k = self._keys
        rows = self._link.many(
            command
            for name in names
            for command in (
                ("HGETALL", k.subscriber(name)),
                ("SMEMBERS", k.followed(name)),
                ("HGET", k.event_gauges, name),
                ("HGET", k.batch_gauges, name),
                ("ZRANGE", k.lanes(name), "(0", "+inf", "BYSCORE", "LIMIT", 0, 1, "WITHSCORES"),
            )
        )
        found = []
        for position, name in enumerate(names):
            fields, topics, queued, batches, oldest = rows[position * 5 : position * 5 + 5]
            values = dict(zip(fields[::2], fields[1::2], strict=True))
            if values:  # gone since the names were read
                found.append(summary(name, values, topics, queued, batches, oldest))
        return found


def resolve(table: Table, name: str, wanted: Subscription) -> tuple[list[str], list[list[object]]]:
    """All topics the subscription has now, and those it creates, each with who else catches it."""
    plain = [pattern.text for pattern in wanted.topics if pattern.is_plain]
    caught = [
        topic
        for topic in table.topics
        if any(p.matches(topic) for p in wanted.topics if not p.is_plain)
    ]
    created: list[list[object]] = [
        [topic, [other for other in table.followers_of(topic) if other != name]]
        for topic in plain
        if topic not in table.topics
    ]
    return sorted({*plain, *caught}), created


def settings_of(wanted: Subscription) -> list[object]:
    patterns = [pattern.text for pattern in wanted.topics if not pattern.is_plain]
    return [
        "callback", wanted.callback,
        "uuid", wanted.uuid,
        "timeout", str(wanted.timeout_ms),
        "max_events", str(wanted.max_events),
        "concurrency", str(wanted.concurrency),
        "patterns", msgpack.packb(patterns),
        "except", msgpack.packb([]),
    ]  # fmt: skip


def first_settings() -> list[object]:
    return [
        "state", "active",
        "health_points", str(FULL_HEALTH),
        "sent", "0",
        "secret", new_secret(),
    ]  # fmt: skip


def summary(
    name: str,
    fields: dict[bytes, bytes],
    topics: list[bytes],
    queued: bytes | None,
    batches: bytes | None,
    oldest: list[bytes],
) -> SubscriberSummary:
    attempted = number(fields.get(b"last_attempted_at"))
    return SubscriberSummary(
        name=name,
        callback=text(fields.get(b"callback")),
        max_events=number(fields.get(b"max_events")),
        timeout_ms=number(fields.get(b"timeout")),
        concurrency=number(fields.get(b"concurrency"), default=1),
        topics=sorted(text(topic) for topic in topics),
        patterns=msgpack.unpackb(fields.get(b"patterns", b"\x90")),
        state=text(fields.get(b"state")) or "active",
        health_points=number(fields.get(b"health_points"), default=FULL_HEALTH),
        last_attempted_at_ms=attempted or None,
        sent=number(fields.get(b"sent")),
        queued=number(queued),
        batches=number(batches),
        oldest_ms=int(oldest[1]) if oldest else None,
    )

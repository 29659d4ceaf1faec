"""Keeps this process's copy of the routing table up to date."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

import msgpack

from routemaster.domain.pattern import Pattern, parse_pattern
from routemaster.store.keys import Keys
from routemaster.store.link import Link, Reply
from routemaster.store.table import Client, Route, Table, Topic

ROUTE_FIELDS = ("max_events", "timeout", "concurrency", "patterns", "except")
T = TypeVar("T")
# Rows asked for in one round trip: bounds the size of a reply.
PAGE = 1000


class Directory:
    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys
        self._lock = threading.Lock()
        self.table = Table(version=-1)

    def fresh(self) -> Table:
        """The table as of now: one round trip when nothing changed; many threads at once make
        one reload."""
        version = self._current_version()
        if self.table.version != version:
            with self._lock:
                if self.table.version != version:
                    self.table = self._reload(self.table)
        return self.table

    def _current_version(self) -> int:
        return int(self._link.call("HGET", self._keys.routes, "version") or 0)

    def _reload(self, old: Table) -> Table:
        keys = self._keys
        # In this order and without a transaction, which a full Redis refuses: changes newer than
        # the version do no harm, and while ours is known none after it has been forgotten.
        found, changed, known = self._link.many(
            [
                ("HGET", keys.routes, "version"),
                ("ZRANGE", keys.changes, f"({old.version}", "+inf", "BYSCORE"),
                ("ZSCORE", keys.changes, f"v:{old.version}"),
            ]
        )
        version = int(found or 0)
        if known is None:
            return self._load(version, *self._everything())
        kinds: dict[str, set[str]] = {"k": set(), "s": set(), "t": set(), "v": set()}
        for member in changed:
            kind, _, name = member.decode().partition(":")
            kinds[kind].add(name)
        return self._load(version, kinds["k"], kinds["s"], kinds["t"], old)

    def _everything(self) -> tuple[set[str], set[str], set[str]]:
        keys = self._keys
        tokens, subscribers, topics = self._link.many(
            [("HKEYS", keys.tokens), ("SMEMBERS", keys.subscribers), ("SMEMBERS", keys.topics)]
        )
        return names(tokens), names(subscribers), names(topics)

    def _load(
        self,
        version: int,
        tokens: Collection[str],
        subscribers: Collection[str],
        topics: Collection[str],
        old: Table | None = None,
    ) -> Table:
        old = old or Table()
        clients, routes = dict(old.clients), dict(old.routes)
        for digest, row in self._rows(tokens, lambda d: [("HGET", self._keys.tokens, d)]):
            put(clients, digest, parse_client_row(row[0]))
        for name, row in self._rows(subscribers, self._route_commands):
            put(routes, name, parse_route(name, *row))
        # A topic's plan holds its subscribers' settings: theirs changed, so does the plan.
        touched = set(topics)
        for name in subscribers:
            for table in (old.routes, routes):
                if name in table:
                    touched |= table[name].topics
        rows = dict(old.topics)
        for name, row in self._rows(touched, self._topic_commands):
            put(rows, name, parse_topic_row(name, row, routes))
        return Table(version, clients, routes, rows)

    def _route_commands(self, name: str) -> list[tuple[str, ...]]:
        return [
            ("HMGET", self._keys.subscriber(name), *ROUTE_FIELDS),
            ("SMEMBERS", self._keys.followed(name)),
        ]

    def _topic_commands(self, name: str) -> list[tuple[str, ...]]:
        return [
            ("SISMEMBER", self._keys.topics, name),
            ("HGET", self._keys.topic(name), "publisher"),
            ("SMEMBERS", self._keys.followers(name)),
        ]

    def _rows(
        self, wanted: Collection[str], commands: Callable[[str], list[tuple[str, ...]]]
    ) -> Iterator[tuple[str, list[Reply]]]:
        """Yields (name, replies) for each name, PAGE names to a round trip."""
        ordered = sorted(wanted)
        for start in range(0, len(ordered), PAGE):
            page = ordered[start : start + PAGE]
            asked = [commands(name) for name in page]
            replies = iter(self._link.many([c for group in asked for c in group]))
            for name, group in zip(page, asked, strict=True):
                yield name, [next(replies) for _ in group]


def put(table: dict[str, T], name: str, value: T | None) -> None:
    if value is not None:
        table[name] = value
    else:
        table.pop(name, None)


def names(members: list[bytes]) -> set[str]:
    return {member.decode() for member in members}


def parse_client_row(row: bytes | None) -> Client | None:
    return Client(**msgpack.unpackb(row)) if row else None


def parse_route(name: str, fields: list[bytes | None], topics: list[bytes]) -> Route | None:
    max_events, timeout, concurrency, patterns, excepted = fields
    if max_events is None or timeout is None or concurrency is None:
        return None
    texts: list[str] = msgpack.unpackb(patterns or b"\x90")
    parsed: tuple[Pattern, ...] = tuple(parse_pattern(text, "topics") for text in texts)
    return Route(
        subscriber=name,
        max_events=int(max_events),
        timeout_ms=int(timeout),
        concurrency=int(concurrency),
        patterns=parsed,
        excepted=frozenset(msgpack.unpackb(excepted or b"\x90")),
        topics=frozenset(names(topics)),
    )


def parse_topic_row(name: str, row: list[Reply], routes: dict[str, Route]) -> Topic | None:
    exists, publisher, followers = row
    if not exists:
        return None
    known = tuple(routes[follower] for follower in sorted(names(followers)) if follower in routes)
    return Topic.build(name, publisher.decode() if publisher else None, known)

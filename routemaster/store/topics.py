from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routemaster.errors import Stale
from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Link
from routemaster.store.packing import for_lua
from routemaster.store.table import Table


@dataclass(frozen=True, slots=True)
class TopicSummary:
    name: str
    publisher: str | None
    events: int
    last_event: bytes | None


class TopicStore:
    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys

    def claim(self, table: Table, topic: str, publisher: str, now_ms: int | str = "") -> None:
        """Make `publisher` the owner, unless somebody is. Raises Stale."""
        k = self._keys
        where = [
            k.routes, k.changes, k.topics, k.topic_prefix, k.followers_prefix, k.followed_prefix,
        ]  # fmt: skip
        followers = [] if topic in table.topics else table.followers_of(topic)
        args = [str(table.version), topic, publisher, for_lua(followers), now_ms]
        if self._link.run(scripts.load().topic_claim, where, args) < 0:
            raise Stale

    def remove(self, table: Table, topic: str) -> bool:
        """False when there is no such topic. Raises Stale."""
        k = self._keys
        where = [
            k.routes, k.changes, k.topics, k.topic(topic), k.followers(topic), k.followed_prefix,
        ]  # fmt: skip
        done = self._link.run(scripts.load().topic_remove, where, [str(table.version), topic])
        if done < 0:
            raise Stale
        return bool(done)

    def summaries(self, names: Sequence[str]) -> list[TopicSummary]:
        rows = self._link.many(
            ("HMGET", self._keys.topic(name), "publisher", "counter", "last_event")
            for name in names
        )
        return [
            TopicSummary(name, publisher.decode() if publisher else None, int(counter or 0), last)
            for name, (publisher, counter, last) in zip(names, rows, strict=True)
        ]

"""Publishing: from credentials, a topic and a body to one script call and one answer.

A plain object with one method, and no web framework, so that any front can serve it.
"""

from __future__ import annotations

from dataclasses import dataclass

from routemaster.clock import Clock
from routemaster.domain.event import EventRules, Events, parse_lines, parse_one_or_many
from routemaster.domain.names import parse_topic
from routemaster.errors import (
    Forbidden,
    InvalidInput,
    Stale,
    StoreUnavailable,
    TooLarge,
    Unauthenticated,
    UnsupportedType,
)
from routemaster.identity import Authenticator, Credentials, Identity
from routemaster.store.directory import Directory
from routemaster.store.events import KEPT_IDS_MS, EventStore, Stored, plan
from routemaster.store.table import Table, Topic
from routemaster.store.topics import TopicStore

# How often the routing table may change under one publish before we say "later".
ATTEMPTS = 20
LINES = {"application/x-ndjson", "application/ndjson", "application/jsonl"}
MAX_KEY = 256


@dataclass(frozen=True, slots=True)
class Publication:
    credentials: Credentials
    topic: str
    body: bytes
    content_type: str = "application/json"
    idempotency_key: str = ""
    # For how many seconds its ids are remembered, as the publisher wrote it.
    remember: str = ""


class Publisher:
    def __init__(
        self,
        authenticator: Authenticator,
        directory: Directory,
        topics: TopicStore,
        events: EventStore,
        clock: Clock,
        rules: EventRules,
        max_fanout: int,
    ) -> None:
        self._authenticator = authenticator
        self._directory = directory
        self._topics = topics
        self._events = events
        self._clock = clock
        self._rules = rules
        self._max_fanout = max_fanout

    def publish(self, publication: Publication) -> Stored:
        """The hot path is one turn of this loop: one script call. The table's version is checked
        by the script for an acceptance, and here for a refusal: neither is by an old table."""
        table = self._directory.table
        parsed: list[Events] = []  # once, however often the table moves
        for _ in range(ATTEMPTS):
            try:
                return self._attempt(publication, table, parsed)
            except Stale:
                table = self._directory.fresh()
            except (Unauthenticated, Forbidden, InvalidInput):
                newest = self._directory.fresh()
                if newest is table:
                    raise
                table = newest
        raise StoreUnavailable("busy: subscriptions are changing too fast")

    def _attempt(self, asked: Publication, table: Table, parsed: list[Events]) -> Stored:
        identity = self._authenticator.identify(asked.credentials, table)
        topic = table.topics.get(asked.topic)
        if topic and topic.publisher and not may_publish(identity, topic):
            raise Forbidden(f"the topic belongs to {topic.publisher}")
        if not parsed:
            parsed.append(self._parse(asked))
        events = parsed[0]
        if topic is None or (topic.publisher is None and not identity.is_root):
            self._claim(identity, table, topic or unborn(table, asked.topic), events)
            raise Stale
        self._check_fanout(events, topic)
        return self._events.publish(
            table,
            topic,
            events,
            request_id=asked.idempotency_key,
            body=asked.body,
            kept_ms=remembered_ms(asked.remember),
        )

    def _claim(self, identity: Identity, table: Table, topic: Topic, events: Events) -> None:
        # A publish that will be refused must not leave a topic behind.
        self._check_fanout(events, topic)
        plan(topic, events)
        self._topics.claim(table, topic.name, "" if identity.is_root else identity.name)

    def _parse(self, asked: Publication) -> Events:
        parse_topic(asked.topic)
        kind = asked.content_type.partition(";")[0].strip().lower()
        key = asked.idempotency_key
        if len(key) > MAX_KEY or not key.isprintable() or not key.isascii():
            raise InvalidInput("Idempotency-Key", f"must be at most {MAX_KEY} printable characters")
        remembered_ms(asked.remember)
        now_ms = self._clock.now_ms()
        if kind == "application/json":
            return parse_one_or_many(asked.topic, asked.body, self._rules, now_ms)
        if kind in LINES:
            return parse_lines(asked.topic, asked.body, self._rules, now_ms)
        raise UnsupportedType(
            "Content-Type", "must be application/json, or application/x-ndjson for one event a line"
        )

    def _check_fanout(self, published: Events, topic: Topic) -> None:
        # One script must not hold Redis for long; one event always passes.
        events, subscribers = len(published), len(topic.routes)
        if events > 1 and events * subscribers > self._max_fanout:
            most = max(1, self._max_fanout // subscribers)
            raise TooLarge("body", f"must hold at most {most} events: {subscribers} subscribers")


def remembered_ms(text: str) -> int:
    if not text:
        return KEPT_IDS_MS
    if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) * 1000 <= KEPT_IDS_MS):
        most_s = KEPT_IDS_MS // 1000
        raise InvalidInput("Routemaster-Remember", f"must be whole seconds from 1 to {most_s}")
    return int(text) * 1000


def unborn(table: Table, name: str) -> Topic:
    """A topic that nobody has named yet, with those whose patterns are waiting for it."""
    return Topic.build(name, None, tuple(table.routes[n] for n in table.followers_of(name)))


def may_publish(identity: Identity, topic: Topic) -> bool:
    return identity.is_root or identity.name == topic.publisher

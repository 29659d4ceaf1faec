"""The routing table: who may publish what, and who gets it, as of one version.

A web process decides by its copy; every script that acts on a decision checks the version and
refuses when it moved on. The version is read *before* the rows: a row may be newer than the
version it is filed under, which costs one more refusal, never a wrong decision.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from routemaster.domain.lane import lane_of
from routemaster.domain.pattern import Pattern
from routemaster.store.packing import for_lua


@dataclass(frozen=True, slots=True)
class Client:
    """What a token opens. `digest_ha1` is there for tokens made while HTTP Digest was on."""

    name: str
    token_id: str
    source: str
    created_at_ms: int
    digest_ha1: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Route:
    """What publishing needs to know of a subscriber."""

    subscriber: str
    max_events: int
    timeout_ms: int
    concurrency: int
    patterns: tuple[Pattern, ...]
    excepted: frozenset[str]
    topics: frozenset[str]

    def follows(self, topic: str) -> bool:
        """Whether its patterns catch a topic that appears now."""
        return topic not in self.excepted and any(p.matches(topic) for p in self.patterns)


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    publisher: str | None
    routes: tuple[Route, ...]
    # The plan of a publish when each subscriber has one lane, packed once per version.
    packed: bytes | None

    @classmethod
    def build(cls, name: str, publisher: str | None, routes: tuple[Route, ...]) -> Topic:
        packed = None
        if all(route.concurrency == 1 for route in routes):
            lane = lane_of("", None, 1)
            packed = for_lua([[r.subscriber, lane, r.max_events, r.timeout_ms] for r in routes])
        return cls(name, publisher, routes, packed)


@dataclass(frozen=True, slots=True)
class Table:
    version: int = 0
    clients: dict[str, Client] = field(default_factory=dict)  # by digest of the token
    routes: dict[str, Route] = field(default_factory=dict)  # by subscriber
    topics: dict[str, Topic] = field(default_factory=dict)

    def followers_of(self, topic: str) -> list[str]:
        """Subscribers whose patterns catch a topic that appears now."""
        return [name for name, route in self.routes.items() if route.follows(topic)]

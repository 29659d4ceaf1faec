"""What went through the bus and what waits, of named subscribers: asked for by name and in pages,
because the counters also hold all who ever were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routemaster.domain.attempt import DELIVERED
from routemaster.store.keys import Keys
from routemaster.store.link import Link
from routemaster.store.replies import number, text
from routemaster.store.series import Flow
from routemaster.store.subscribers import FULL_HEALTH

PAGE = 200
FAILURES = ("failed", "gone")
DROP_REASONS = ("memory", "operator", "unsubscribed")
FIELDS = (
    "events.delivered",
    "delivery.latency",
    f"delivery.attempts,outcome={DELIVERED}",
    *(f"delivery.attempts,outcome={outcome}" for outcome in FAILURES),
    *(f"events.dropped,reason={reason}" for reason in DROP_REASONS),
)


@dataclass(frozen=True, slots=True)
class Standing:
    """A subscriber as of now. `totals` only rise."""

    totals: Flow
    queued: int
    batches: int
    state: str
    health: int


class TrafficStore:
    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys

    def subscribers(self, names: Sequence[str]) -> dict[str, Standing]:
        k = self._keys
        found: dict[str, Standing] = {}
        for start in range(0, len(names), PAGE):
            page = names[start : start + PAGE]
            fields = [f"{field},subscriber={name}" for name in page for field in FIELDS]
            *states, counts, events, batches = self._link.many(
                [
                    *(("HMGET", k.subscriber(name), "state", "health_points") for name in page),
                    ("HMGET", k.counters, *fields),
                    ("HMGET", k.event_gauges, *page),
                    ("HMGET", k.batch_gauges, *page),
                ]
            )
            for place, name in enumerate(page):
                row = counts[place * len(FIELDS) : (place + 1) * len(FIELDS)]
                queued = number(events[place])
                state, health = states[place]
                found[name] = Standing(
                    totals=flow([number(count) for count in row], queued),
                    queued=queued,
                    batches=number(batches[place]),
                    state=text(state) or "active",
                    health=number(health, default=FULL_HEALTH),
                )
        return found

    def published(self, topics: Sequence[str]) -> dict[str, int]:
        """Events that each topic has accepted."""
        found: dict[str, int] = {}
        for start in range(0, len(topics), 5 * PAGE):
            page = topics[start : start + 5 * PAGE]
            fields = [f"events.published,topic={name}" for name in page]
            counts = self._link.call("HMGET", self._keys.counters, *fields)
            found.update(zip(page, map(number, counts), strict=True))
        return found


def flow(row: Sequence[int], queued: int) -> Flow:
    """What was added is what waits and what left; see CounterStore."""
    delivered, latency_ms, succeeded, failed, gone, *dropped = row
    lost = sum(dropped)
    return Flow(
        added=max(0, queued + delivered + lost),
        delivered=delivered,
        succeeded=succeeded,
        failed=failed + gone,
        latency_ms=latency_ms,
        dropped=lost,
    )

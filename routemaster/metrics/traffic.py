"""The bus at one moment, as the dashboard and its history see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from routemaster.bus import Bus
from routemaster.metrics.gather import ALIVE_MS
from routemaster.metrics.memory import Memory, measure
from routemaster.store.series import Flow
from routemaster.store.traffic import Standing


@dataclass(frozen=True, slots=True)
class Moment:
    now_ms: int
    published: dict[str, int]  # by topic; only rises
    subscribers: dict[str, Standing]
    oldest_ms: dict[str, int]  # of those that have something waiting
    workers: dict[str, int]  # worker -> its last heartbeat
    due: int
    memory: Memory

    @property
    def alive(self) -> int:
        return sum(beat > self.now_ms - ALIVE_MS for beat in self.workers.values())

    def queued(self, names: Iterable[str] | None = None) -> int:
        chosen = self.subscribers if names is None else names
        return sum(self.subscribers[name].queued for name in chosen if name in self.subscribers)

    def waits_s(self, names: Iterable[str] | None = None) -> int:
        """How long the oldest event of these subscribers, or of all, has waited."""
        chosen = self.oldest_ms if names is None else names
        times = [self.oldest_ms[name] for name in chosen if name in self.oldest_ms]
        return max(0, self.now_ms - min(times)) // 1000 if times else 0


def look(bus: Bus) -> Moment:
    seconds, microseconds = bus.link.call("TIME")
    table = bus.directory.fresh()
    standings = bus.traffic.subscribers(sorted(table.routes))
    waiting = [name for name, standing in standings.items() if standing.batches]
    beats = bus.link.call("HGETALL", bus.keys.workers)
    return Moment(
        now_ms=int(seconds) * 1000 + int(microseconds) // 1000,
        published=bus.traffic.published(sorted(table.topics)),
        subscribers=standings,
        oldest_ms=bus.lanes.oldest_ms(waiting),
        workers={
            name.decode(): int(beat) for name, beat in zip(beats[::2], beats[1::2], strict=True)
        },
        due=bus.main.due(),
        memory=measure(bus),
    )


def whole_bus(counters: Mapping[str, int]) -> Flow:
    """Of all who ever were: a sum over those who are now would fall when one of them goes."""
    sums: dict[str, int] = {}
    for field, count in counters.items():
        name, _, tags = field.partition(",")
        sums[name] = sums.get(name, 0) + count
        if tags.startswith("outcome="):
            outcome = f"{name},{tags.partition(',')[0]}"
            sums[outcome] = sums.get(outcome, 0) + count
    attempts = "delivery.attempts,outcome="
    return Flow(
        added=sums.get("events.published", 0),
        delivered=sums.get("events.delivered", 0),
        succeeded=sums.get(f"{attempts}delivered", 0),
        failed=sums.get(f"{attempts}failed", 0) + sums.get(f"{attempts}gone", 0),
        latency_ms=sums.get("delivery.latency", 0),
        dropped=sums.get("events.dropped", 0),
    )


def risen(before: Moment, now: Moment, names: Iterable[str]) -> Flow:
    """What went through between two moments to those who were there at both."""
    rise = [0] * len(Flow().as_list())
    for name in names:
        if name in before.subscribers and name in now.subscribers:
            old = before.subscribers[name].totals.as_list()
            new = now.subscribers[name].totals.as_list()
            rise = [total + max(0, b - a) for total, a, b in zip(rise, old, new, strict=True)]
    return Flow(*rise)

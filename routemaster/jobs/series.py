from __future__ import annotations

from collections.abc import Callable

from routemaster.bus import Bus
from routemaster.metrics.traffic import Moment, look, whole_bus
from routemaster.store.series import MINUTE_MS, MOST_SUBSCRIBERS, WHOLE_BUS, Entry


class Series:
    """Writes down what the last minute brought, for the dashboard's charts."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def run(self, is_over: Callable[[], bool]) -> None:
        now = look(self._bus)
        totals = whole_bus(self._bus.counters.read())
        names = self._chosen(now)
        gauges = (now.queued(), now.waits_s(), now.alive, now.memory.used_bytes, now.due)
        entries = [Entry(WHOLE_BUS, totals, gauges)]
        for name in names:
            standing = now.subscribers[name]
            own = (standing.queued, now.waits_s([name]), standing.health)
            entries.append(Entry(name, standing.totals, own))
        self._bus.series.append(now.now_ms // MINUTE_MS, entries)

    def _chosen(self, now: Moment) -> list[str]:
        """Who has a series keeps it; the free places go to the busiest."""
        known = self._bus.series.names()

        def rank(name: str) -> tuple[bool, int, str]:
            return name not in known, -now.subscribers[name].totals.added, name

        return sorted(now.subscribers, key=rank)[:MOST_SUBSCRIBERS]

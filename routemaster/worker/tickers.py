from __future__ import annotations

from collections.abc import Mapping

from routemaster.bus import Bus
from routemaster.domain.job import Job


class Tickers:
    """Sees to it that each job is in the queue, for its next round time by Redis' clock.

    All workers mean the same moment and the queue holds a job once: however many workers tick, a
    job runs once in its interval."""

    def __init__(self, bus: Bus, intervals_ms: Mapping[str, int]) -> None:
        self._bus = bus
        self._every_ms = intervals_ms

    def step(self, now_ms: int) -> int:
        """Returns when the next of them is due."""
        due_ms = {name: (now_ms // every + 1) * every for name, every in self._every_ms.items()}
        for name, run_at_ms in due_ms.items():
            self._bus.aux.push(Job(name).dump(), run_at_ms)
        return min(due_ms.values())

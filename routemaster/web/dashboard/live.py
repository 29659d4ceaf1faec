"""The bus now, looked at once for everybody who watches: its cost does not grow with viewers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from routemaster.bus import Bus
from routemaster.metrics.traffic import Moment, look, risen
from routemaster.store.series import Flow

LEAST_MS = 1000
# A look at very many subscribers is long: at most a twentieth of the time goes to looking.
REST = 20
# Rates are over as much of this as there is.
WINDOW_MS = 10_000


@dataclass(frozen=True, slots=True)
class Pace:
    """What went through lately; over no time at all when nobody has looked for a while."""

    flow: Flow
    published: int
    seconds: float

    @property
    def published_per_s(self) -> float | None:
        return self.per_s(self.published)

    def per_s(self, count: int) -> float | None:
        return count / self.seconds if self.seconds else None


NO_PACE = Pace(Flow(), 0, 0)


class Live:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._lock = threading.Lock()
        self._moments: deque[Moment] = deque()
        self._next_look_ms = 0.0

    def now(self) -> Moment:
        with self._lock:
            started_ms = self._bus.clock.mono_ms()
            if not self._moments or started_ms >= self._next_look_ms:
                self._moments.append(look(self._bus))
                ended_ms = self._bus.clock.mono_ms()
                rest_ms = max(LEAST_MS, REST * (ended_ms - started_ms))
                self._next_look_ms = ended_ms + rest_ms
                self._forget(max(WINDOW_MS, 2 * rest_ms))
            return self._moments[-1]

    def pace(self, names: Sequence[str], topics: Sequence[str] = ()) -> Pace:
        """Of these subscribers and topics, as many of them as were there at both ends."""
        with self._lock:
            moments = list(self._moments)
        if len(names) + len(topics) == 1:  # since it is there, if it is new
            moments = [m for m in moments if has(m, *names, *topics)]
        if len(moments) < 2:
            return NO_PACE
        before, now = moments[0], moments[-1]
        published = sum(
            max(0, now.published[topic] - before.published[topic])
            for topic in topics
            if topic in before.published and topic in now.published
        )
        seconds = max(0, now.now_ms - before.now_ms) / 1000
        return Pace(risen(before, now, names), published, seconds)

    def _forget(self, window_ms: float) -> None:
        now_ms = self._moments[-1].now_ms
        while abs(now_ms - self._moments[0].now_ms) > window_ms:
            self._moments.popleft()


def has(moment: Moment, name: str) -> bool:
    return name in moment.subscribers or name in moment.published

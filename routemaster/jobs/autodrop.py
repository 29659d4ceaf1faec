"""Memory is short: the oldest batches of who holds most are given up, counted and recorded.

Everything here works in a Redis that refuses writes already: it only reads, and calls scripts that
free memory."""

from __future__ import annotations

import heapq
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from routemaster.bus import Bus
from routemaster.domain.lane import lane_id
from routemaster.errors import StoreUnavailable
from routemaster.metrics.memory import Memory, marks_of, measure
from routemaster.store.lanes import Holder

REASON = "memory"
# Then memory is measured again: a step may not go far below the low mark.
STEP_BATCHES = 1000
STEP_SHARE = 20  # one batch in so many
# Memory that does not shrink is somebody else's, or comes in as fast as we free it: later again.
STEPS_IN_VAIN = 3
FREEING_LOOKS, FREEING_PAUSE_S = 50, 0.01

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Progress:
    gone: Counter[str] = field(default_factory=Counter)  # subscriber -> events
    # Lanes and subscribers that have no more to give now: what is left of them is being delivered.
    spent: set[str] = field(default_factory=set)


class Autodrop:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def run(self, is_over: Callable[[], bool]) -> None:
        memory = measure(self._bus)
        marks = marks_of(memory.max_bytes, self._bus.settings.redis_min_free_bytes)
        if memory.used_bytes <= marks.high_bytes:
            return
        while self._bus.lanes.sweep() and not is_over():
            pass  # what nobody waits for goes first
        progress = Progress()
        try:
            memory = self._drop_down_to(marks.low_bytes, progress, is_over)
        finally:
            for subscriber, events in sorted((+progress.gone).items()):
                log.warning("dropped reason=%s subscriber=%s events=%s", REASON, subscriber, events)
        log.warning(
            "memory short used=%s high=%s low=%s",
            memory.used_bytes, marks.high_bytes, marks.low_bytes,
        )  # fmt: skip

    def _drop_down_to(
        self, low_bytes: int, progress: Progress, is_over: Callable[[], bool]
    ) -> Memory:
        memory = self._settled(is_over)
        least_bytes, in_vain = memory.used_bytes, 0
        while memory.used_bytes > low_bytes and in_vain < STEPS_IN_VAIN and not is_over():
            holders = [h for h in self._bus.lanes.holders() if h.name not in progress.spent]
            if not holders:
                break
            total = sum(holder.batches for holder in holders)
            asked = shares(holders, quota(total, memory, low_bytes))
            dropped = sum(self._drop_from(name, most, progress) for name, most in asked.items())
            memory = self._settled(is_over)
            if memory.used_bytes < least_bytes:
                in_vain = 0
            elif dropped:  # else we have only learned who has nothing to give
                in_vain += 1
            least_bytes = min(least_bytes, memory.used_bytes)
        return memory

    def _drop_from(self, subscriber: str, most: int, progress: Progress) -> int:
        """Returns how many batches are gone."""
        lanes = [
            lane
            for lane in self._bus.lanes.holding_lanes(subscriber)
            if lane_id(subscriber, lane.name) not in progress.spent
        ]
        if not lanes:
            progress.spent.add(subscriber)
        gone = 0
        for lane, count in shares(lanes, most).items():
            batches, events = self._drop(subscriber, lane, count)
            gone += batches
            progress.gone[subscriber] += events
            if batches < count:
                progress.spent.add(lane_id(subscriber, lane))
        return gone

    def _drop(self, subscriber: str, lane: str, count: int) -> tuple[int, int]:
        try:
            return self._bus.lanes.drop(subscriber, lane, count, REASON)
        except StoreUnavailable as error:  # one lane's keys may be broken: the others must go on
            log.error("cannot drop subscriber=%s lane=%r why=%s", subscriber, lane, error.reason)
            return 0, 0

    def _settled(self, is_over: Callable[[], bool]) -> Memory:
        memory = measure(self._bus)
        for _ in range(FREEING_LOOKS):
            if not memory.is_freeing or is_over():
                break
            self._bus.clock.sleep(FREEING_PAUSE_S)
            memory = measure(self._bus)
        return memory


def quota(batches: int, memory: Memory, low_bytes: int) -> int:
    """How many batches to give up before memory is measured again. Taking all memory for theirs
    makes batches look larger than they are, so that the low mark is approached from above."""
    needed = batches * (memory.used_bytes - low_bytes) // memory.used_bytes
    return max(1, min(needed, batches // STEP_SHARE, STEP_BATCHES))


def shares(holders: Iterable[Holder], batches: int) -> dict[str, int]:
    """Who gives up how many of them: one by one, always who then holds most; among equals, who
    has the oldest."""
    heap: list[tuple[float, int, str, float, int]] = [
        (-h.events, h.oldest_ms, h.name, h.events / h.batches, h.batches) for h in holders
    ]
    heapq.heapify(heap)
    chosen: Counter[str] = Counter()
    for _ in range(batches):
        if not heap:
            break
        held, oldest_ms, name, each, left = heapq.heappop(heap)
        chosen[name] += 1
        if left > 1:
            heapq.heappush(heap, (held + each, oldest_ms, name, each, left - 1))
    return dict(chosen)

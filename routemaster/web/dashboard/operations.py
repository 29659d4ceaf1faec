"""What was delivered to one subscriber lately, as its page shows it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from flask import request

from routemaster.bus import Bus
from routemaster.store.operations import DROPPED_STATUS, STATUSES, SUCCESS, Operation
from routemaster.web.dashboard.listing import asked_number
from routemaster.web.dashboard.live import REST

PAGE = 25
# Of each lane; what waits behind them has not been tried.
WAITING = 25
LEAST_MS = 1000
MOST_KEPT = 50


@dataclass(frozen=True, slots=True)
class Shown:
    operations: list[Operation]
    status: str
    page: int
    pages: int
    found: int


class Histories:
    """Of the subscribers looked at last: reading a long one takes its time, whoever asks."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[float, list[Operation]]] = OrderedDict()

    def of(self, name: str) -> list[Operation]:
        clock = self._bus.clock
        started_ms = clock.mono_ms()
        with self._lock:
            until_ms, operations = self._kept.get(name, (0.0, []))
        if started_ms < until_ms:
            return operations
        operations = self._bus.operations.recent(name, WAITING, clock.now_ms())
        ended_ms = clock.mono_ms()
        rest_ms = max(LEAST_MS, REST * (ended_ms - started_ms))
        with self._lock:
            self._kept[name] = (ended_ms + rest_ms, operations)
            self._kept.move_to_end(name)
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return operations

    def forget(self, name: str) -> None:
        """After an action: who clicked wants to see what came of it."""
        with self._lock:
            self._kept.pop(name, None)

    def shown(self, name: str) -> Shown:
        asked = request.args.get("status", "")
        status = asked if asked in STATUSES else ""
        found = [one for one in self.of(name) if not status or one.status == status]
        pages = max(1, -(-len(found) // PAGE))
        page = min(asked_number("page"), pages)
        return Shown(found[(page - 1) * PAGE : page * PAGE], status, page, pages, len(found))


def can_redeliver(operation: Operation) -> bool:
    return operation.status not in (SUCCESS, DROPPED_STATUS)

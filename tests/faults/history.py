"""What a run has seen from outside: who published and subscribed, what arrived, what was broken.

Times are seconds of one monotonic clock. What the bus should do stands in checker.py alone.
"""

from __future__ import annotations

import json
import math
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"
NEVER = math.inf


@dataclass(frozen=True)
class Publish:
    """Events are named by `publisher/number`, and each publisher counts upwards."""

    topic: str
    events: tuple[str, ...]
    began: float
    ended: float
    result: str


@dataclass(frozen=True)
class Life:
    """A subscription from its making to its end; a later one of the same name is another life."""

    name: str
    topics: tuple[str, ...]
    subscribing: float
    subscribed: float
    leaving: float = NEVER
    left: float = NEVER


@dataclass(frozen=True)
class Request:
    """What a subscriber got, and its answer; status 0 when it gave none in time."""

    life: str
    bid: str
    lane: str
    first: int
    last: int
    events: tuple[str, ...]
    status: int
    arrived: float
    answered: float
    dropped: tuple[tuple[int, int], ...] = ()

    @property
    def is_acknowledged(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True)
class Fault:
    kind: str
    began: float
    ended: float
    # A worker that ends in order gives back what it holds: then nothing may come twice.
    may_repeat: bool = True


@dataclass
class History:
    publishes: list[Publish] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, *records: Publish | Life | Request | Fault) -> None:
        with self._lock:
            for record in records:
                self._list_of(record).append(record)

    def write(self, path: Path) -> Path:
        """One JSON object a line, for who looks for the reason."""
        rows: list[Any] = [*self.faults, *self.lives, *self.publishes, *self.requests]
        with path.open("w") as file:
            for row in rows:
                file.write(json.dumps({"what": type(row).__name__} | asdict(row)) + "\n")
        return path

    def _list_of(self, record: Publish | Life | Request | Fault) -> list[Any]:
        lists: dict[type, list[Any]] = {
            Publish: self.publishes,
            Life: self.lives,
            Request: self.requests,
            Fault: self.faults,
        }
        return lists[type(record)]

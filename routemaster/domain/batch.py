from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Batch:
    """What a delivery job carries: the oldest batch of its lane."""

    bid: str
    subscriber: str
    lane: str
    created_ms: int
    attempts: int
    first_seq: int
    events: tuple[bytes, ...]

    @property
    def last_seq(self) -> int:
        return self.first_seq + len(self.events) - 1

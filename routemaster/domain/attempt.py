"""One finished try to deliver a batch: a row of its subscriber's history, and of the export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgpack

DELIVERED, DROPPED = "delivered", "dropped"
HISTORY_ITEMS = 14


@dataclass(frozen=True, slots=True)
class Attempt:
    """`lane_drop` writes a row as well: its outcome is `dropped`, its error the reason."""

    lane: str
    bid: str
    number: int
    events: int
    sent_bytes: int
    created_ms: int
    started_ms: int
    finished_ms: int
    outcome: str
    status: int = 0
    error: str = ""
    worker: str = ""
    first_seq: int = 0
    excerpt: bytes = b""

    @property
    def took_ms(self) -> int:
        return max(0, self.finished_ms - self.started_ms)

    def history_row(self) -> bytes:
        # A success says nothing that is worth its bytes: there are many of them.
        excerpt = b"" if self.outcome == DELIVERED else self.excerpt
        row = [*self._common(), self.first_seq, excerpt]
        return bytes(msgpack.packb(row))

    def stream_row(self, subscriber: str) -> bytes:
        return bytes(msgpack.packb([subscriber, *self._common(), self.first_seq]))

    def _common(self) -> list[object]:
        return [
            self.lane, self.bid, self.number, self.events, self.sent_bytes, self.created_ms,
            self.started_ms, self.finished_ms, self.outcome, self.status, self.error, self.worker,
        ]  # fmt: skip

    @classmethod
    def parse(cls, row: bytes) -> Attempt | None:
        """None for what is not such a row: Redis may hold anything."""
        try:
            items: Any = msgpack.unpackb(row, unicode_errors="replace")
            if len(items) != HISTORY_ITEMS:
                return None
            lane, bid, number, events, sent, created, started, finished = items[:8]
            outcome, status, error, worker, first_seq, excerpt = items[8:]
            return cls(
                str(lane), str(bid), int(number), int(events), int(sent), int(created),
                int(started), int(finished), str(outcome), int(status), str(error), str(worker),
                int(first_seq), excerpt if isinstance(excerpt, bytes) else str(excerpt).encode(),
            )  # fmt: skip
        except (ValueError, TypeError, msgpack.UnpackException):
            return None

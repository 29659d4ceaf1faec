"""One lane of a subscriber: what has arrived, and which batch is next."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from routemaster.demo.traffic import Bursts, Ints


class Batch:
    __slots__ = ("attempts", "bid", "created_ms", "events", "first_seq", "gone_ms", "size_bytes")

    def __init__(self, bid: str, first_seq: int, events: int, created_ms: int, size: int) -> None:
        self.bid = bid
        self.first_seq = first_seq
        self.events = events
        self.created_ms = created_ms
        self.size_bytes = size
        self.attempts = 0
        self.gone_ms: int | None = None


class Lane:
    """As the bus does it: events fill a batch up to its maximum, the next one begins; a batch that
    waits goes on filling, and is closed when it is taken."""

    def __init__(self, name: str, prefix: str, bursts: Bursts, most: int, timeout_ms: int) -> None:
        self.name = name
        self.bursts = bursts
        self.batches: list[Batch] = []  # every one there was, in order
        self._prefix = prefix
        self._times: list[int] = bursts.at_ms.tolist()
        self._ends: list[int] = np.cumsum(bursts.events).tolist()
        self._bytes_per_event = int(bursts.data_bytes.sum()) / max(1, int(bursts.events.sum()))
        self._most = most
        self._timeout_ms = timeout_ms
        self._gone = 0  # events delivered or dropped
        self._at = 0  # the burst of the first that is not
        self._open: Batch | None = None

    def due_ms(self) -> int | None:
        """When the next batch is full or has waited long enough; None when nothing comes."""
        if self._at >= len(self._times):
            return None
        created_ms, wanted = self._times[self._at], self._gone + self._most
        last_ms = created_ms + self._timeout_ms
        at = self._at
        while at < len(self._times) and self._times[at] <= last_ms:
            if self._ends[at] >= wanted:
                return self._times[at]
            at += 1
        return last_ms

    def waiting(self, now_ms: int) -> int:
        """Events."""
        bursts = bisect_right(self._times, now_ms, lo=self._at)
        return (self._ends[bursts - 1] if bursts else 0) - self._gone

    def take(self, now_ms: int) -> Batch | None:
        """The same batch until it is gone."""
        if self._open is None:
            events = min(self._most, self.waiting(now_ms))
            if events <= 0:
                return None
            self._open = Batch(
                f"{self._prefix}{len(self.batches):06x}", self._gone + 1, events,
                self._times[self._at], round(events * self._bytes_per_event) + events + 1,
            )  # fmt: skip
            self.batches.append(self._open)
        return self._open

    def remove(self, now_ms: int) -> None:
        """The batch that was taken is delivered, or dropped."""
        batch = self._open
        assert batch is not None
        batch.gone_ms = now_ms
        self._gone += batch.events
        while self._at < len(self._ends) and self._ends[self._at] <= self._gone:
            self._at += 1
        self._open = None

    def all_batches(self, end_ms: int) -> tuple[Ints, Ints]:
        """When each was begun and was gone (`end_ms`: is still there), the untouched ones too."""
        begun = [batch.created_ms for batch in self.batches]
        gone = [end_ms if batch.gone_ms is None else batch.gone_ms for batch in self.batches]
        held = self._open.events if self._open else 0
        first, last = self._gone + held, self._gone + self.waiting(end_ms - 1)
        starts = np.arange(first, last, self._most, dtype=np.int64)
        bursts = np.searchsorted(np.asarray(self._ends, dtype=np.int64), starts, side="right")
        begun += self.bursts.at_ms[bursts].tolist()
        gone += [end_ms] * len(starts)
        return np.asarray(begun, dtype=np.int64), np.asarray(gone, dtype=np.int64)

"""A row for each minute of the last day: of the whole bus, and of some of its subscribers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgpack

from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Arg, Link
from routemaster.store.packing import for_lua

WHOLE_BUS = ""
KEPT_MINUTES = 1500  # a day and an hour, so that a window of a day has its first minute too
MOST_SUBSCRIBERS = 200
MINUTE_MS = 60_000
RISES = 6
ROW_HEAD = 2


@dataclass(frozen=True, slots=True)
class Flow:
    """How much went through: totals, or what they rose by."""

    added: int = 0
    delivered: int = 0
    succeeded: int = 0
    failed: int = 0
    latency_ms: int = 0
    dropped: int = 0

    def as_list(self) -> list[int]:
        return [
            self.added, self.delivered, self.succeeded, self.failed, self.latency_ms, self.dropped,
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Minute:
    """`span` minutes that end with `minute`. `gauges` are as they were at its end."""

    minute: int
    span: int
    flow: Flow
    gauges: tuple[int, ...]

    @classmethod
    def parse(cls, row: bytes) -> Minute | None:
        """None for what is no such row: Redis may hold anything."""
        try:
            items: Any = [int(item) for item in msgpack.unpackb(row)]
            minute, span, *rest = items
            if span < 1 or len(rest) < RISES:
                return None
            return cls(minute, span, Flow(*rest[:RISES]), tuple(rest[RISES:]))
        except (ValueError, TypeError, msgpack.UnpackException):
            return None


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    totals: Flow
    gauges: Sequence[int]


class SeriesStore:
    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys

    def append(self, minute: int, entries: Sequence[Entry]) -> int:
        """Returns how many series have a new row. Series that are not named are forgotten."""
        k = self._keys
        where = [k.series_totals, k.series, k.series_prefix]
        packed = for_lua([[e.name, e.totals.as_list(), list(e.gauges)] for e in entries])
        args: list[Arg] = [minute, packed, KEPT_MINUTES, KEPT_MINUTES * MINUTE_MS]
        return int(self._link.run(scripts.load().series_append, where, args))

    def names(self) -> set[str]:
        return {name.decode() for name in self._link.call("HKEYS", self._keys.series_totals)}

    def last_totals(self, names: Sequence[str]) -> dict[str, Flow]:
        """Of each at its last row, or when it was first seen."""
        if not names:
            return {}
        rows = self._link.call("HMGET", self._keys.series_totals, *names)
        words = {name: row.split() for name, row in zip(names, rows, strict=True) if row}
        return {
            name: Flow(*map(int, totals))
            for name, (_, *totals) in words.items()
            if len(totals) == RISES and all(map(bytes.isdigit, totals))
        }

    def read(self, names: Sequence[str], minutes: int) -> dict[str, list[Minute]]:
        """The newest rows of each, oldest first."""
        k = self._keys
        keys = [k.series_prefix + name if name else k.series for name in names]
        replies = self._link.many([("LRANGE", key, -minutes, -1) for key in keys])
        return {
            name: in_order([Minute.parse(row) for row in rows])
            for name, rows in zip(names, replies, strict=True)
        }


def in_order(rows: Sequence[Minute | None]) -> list[Minute]:
    """Without rows from before Redis' clock went back."""
    found: list[Minute] = []
    for row in rows:
        if row is None:
            continue
        while found and found[-1].minute >= row.minute:
            found.pop()
        found.append(row)
    return found

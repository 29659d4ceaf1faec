"""What waits in Redis, as the datasets' rows. Redis may hold anything: what is no such row is None,
and must not keep the others from being exported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgpack

from routemaster.store.exports import Waiting

Row = Sequence[object]
DAY_MS = 86_400_000
INT32, INT64 = 2**31, 2**53
LAST_MS = 253_402_300_800_000  # the year 10000


def attempt(waiting: Waiting) -> Row | None:
    def parse(items: list[Any]) -> Row:
        subscriber, lane, bid, number, events, sent, created, started, finished = items[:9]
        outcome, status, error, worker, first_seq = items[9:]
        created, started, finished = ms(created), ms(started), ms(finished)
        return (
            waiting.id, str(subscriber), str(lane), str(bid), whole(number), whole(events),
            whole(sent, INT64), whole(first_seq, INT64), created, started, finished,
            max(0, finished - started), max(0, finished - created), str(outcome), whole(status),
            str(error), str(worker),
        )  # fmt: skip

    return parsed(waiting, parse)


def drop(waiting: Waiting) -> Row | None:
    def parse(items: list[Any]) -> Row:
        subscriber, lane, bid, events, first, last, created, at, reason = items
        return (
            waiting.id, str(subscriber), str(lane), str(bid), whole(events), whole(first, INT64),
            whole(last, INT64), ms(created), ms(at), str(reason),
        )  # fmt: skip

    return parsed(waiting, parse)


def minute(field: str, value: str) -> Row | None:
    try:
        number, topic, publisher = field.split("|")
        events, size, fanout = value.split()
        counts = [whole(text, INT64) for text in (events, size, fanout)]
        return (ms(int(number) * 60_000), topic, publisher, *counts)
    except ValueError:
        return None


def parsed(waiting: Waiting, parse: Callable[[list[Any]], Row]) -> Row | None:
    try:
        return parse(msgpack.unpackb(waiting.packed, unicode_errors="replace"))
    except (ValueError, TypeError, OverflowError, msgpack.UnpackException):
        return None


def whole(value: Any, most: int = INT32) -> int:
    number = int(value)
    if not 0 <= number < most:
        raise ValueError("out of range")
    return number


def ms(value: Any) -> int:
    return whole(value, LAST_MS)

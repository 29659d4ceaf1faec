"""What waits in Redis, as the datasets' rows. Redis may hold anything: what is no such row is None,
and must not keep the others from being exported.

There are many of them, and a worker has other things to do: so numbers are looked at together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgpack

from routemaster.store.exports import Waiting

Row = Sequence[object]
DAY_MS = 86_400_000
INT32, INT64 = 2**31, 2**53
LAST_MS = 253_402_300_800_000  # the year 10000
INTS = {int}


def attempt(waiting: Waiting) -> Row | None:
    try:
        (
            subscriber, lane, bid, number, events, sent, created, started, finished, outcome,
            status, error, worker, first_seq,
        ) = msgpack.unpackb(waiting.packed, unicode_errors="replace")  # fmt: skip
        check((number, events, status), INT32)
        check((sent, first_seq), INT64)
        check((created, started, finished), LAST_MS)
        return (
            waiting.id, str(subscriber), str(lane), str(bid), number, events, sent, first_seq,
            created, started, finished, max(0, finished - started), max(0, finished - created),
            str(outcome), status, str(error), str(worker),
        )  # fmt: skip
    except (ValueError, TypeError, msgpack.UnpackException):
        return None


def drop(waiting: Waiting) -> Row | None:
    try:
        subscriber, lane, bid, events, first, last, created, at, reason = msgpack.unpackb(
            waiting.packed, unicode_errors="replace"
        )
        check((events,), INT32)
        check((first, last), INT64)
        check((created, at), LAST_MS)
        return (
            waiting.id, str(subscriber), str(lane), str(bid), events, first, last, created, at,
            str(reason),
        )  # fmt: skip
    except (ValueError, TypeError, msgpack.UnpackException):
        return None


def minute(field: str, value: str) -> Row | None:
    try:
        number, topic, publisher = field.split("|")
        events, size, fanout = map(int, value.split())
        at_ms = int(number) * 60_000
        check((events, size, fanout), INT64)
        check((at_ms,), LAST_MS)
        return (at_ms, topic, publisher, events, size, fanout)
    except ValueError:
        return None


def check(numbers: tuple[Any, ...], most: int) -> None:
    if set(map(type, numbers)) != INTS or min(numbers) < 0 or max(numbers) >= most:
        raise ValueError("not a number, or out of range")


Parse = Callable[[Waiting], Row | None]

"""A delivery as the subscriber's code sees it, and what that code may say to the bus."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

Event = Mapping[str, Any]  # topic, type, url, t, and perhaps data and facet

_RANGES = re.compile(r"\d{1,19}-\d{1,19}(?:, ?\d{1,19}-\d{1,19})*", re.ASCII).fullmatch


class Busy(Exception):
    """Raised by a handler: the same batch again, after so long (1 s to 1 h). It is no failure."""

    def __init__(self, retry_after_s: int = 1) -> None:
        super().__init__(f"busy for {retry_after_s} s")
        self.retry_after_s = retry_after_s


class Gone(Exception):
    """Raised by a handler: no more deliveries, until somebody resumes the subscription."""


class Malformed(ValueError):
    pass


@dataclass(frozen=True, slots=True)
class Gap:
    """Events of a lane, from `first` to `last`, that were never delivered here."""

    lane: str
    first: int
    last: int
    was_dropped: bool  # the bus says so: it gave them up for want of memory


@dataclass(frozen=True, slots=True)
class Batch:
    """`attempt` counts from 1. `dropped` are ranges before this batch that the bus gave up."""

    id: str
    events: tuple[Event, ...]
    attempt: int = 1
    lane: str = ""
    first_seq: int = 0
    last_seq: int = 0
    dropped: tuple[tuple[int, int], ...] = ()

    def holding(self, events: Sequence[Event]) -> Batch:
        return replace(self, events=tuple(events))

    @classmethod
    def parse(cls, headers: Mapping[str, str], body: bytes) -> Batch:
        """Header names in lower case."""
        first, last = (_ranges(headers.get("routemaster-sequence", "")) or ((0, 0),))[0]
        attempt = headers.get("routemaster-attempt", "1")
        return cls(
            headers.get("webhook-id", ""),
            _events(body),
            int(attempt) if attempt.isascii() and attempt.isdigit() else 1,
            unquote(headers.get("routemaster-lane", "")),
            first,
            last,
            _ranges(headers.get("routemaster-dropped", "")),
        )


Handler = Callable[[Batch], object]


def _events(body: bytes) -> tuple[Event, ...]:
    try:
        events = json.loads(body)
    except (ValueError, RecursionError):
        raise Malformed("the body is no JSON") from None
    if not isinstance(events, list) or not all(_is_event(event) for event in events):
        raise Malformed("the body is no list of events")
    return tuple(events)


def _is_event(event: object) -> bool:
    return (
        isinstance(event, dict)
        and all(isinstance(event.get(name), str) for name in ("topic", "type", "url"))
        and isinstance(event.get("t"), int)
    )


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    if not _RANGES(text):
        return ()
    pairs = (part.strip().split("-") for part in text.split(","))
    return tuple((int(first), int(last)) for first, last in pairs)

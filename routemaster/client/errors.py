"""What can go wrong between a program and the bus, one class per thing to do about it.

BusError                  `status` (None: no answer), `detail` (what the bus said of it)
├── InvalidRequest        400, 413, 415, or found before sending: correct it; it is a ValueError too
│   └── TooManyAtOnce     413 with `most_events` or `most_bytes`
├── Unauthorized          401: the token is not known to this bus
├── NotAllowed            403: the token is another client's, or not root's
├── NotFound              404
├── Conflict              409, 422: the message says what can be done instead
├── Unavailable           no answer, 429 or 5xx until the deadline: what was to be stored may be
│                         stored; the same call again is safe when it carries the same id
└── NotSent               a background publisher ended with events left; `events` are they
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from routemaster.errors import InvalidInput

_MOST = re.compile(r"must (?:hold|be) at most (\d+) (events|bytes)").search


class BusError(Exception):
    def __init__(
        self,
        message: str,
        status: int | None = None,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.detail = dict(detail or {})


class InvalidRequest(BusError, ValueError):
    """`field` breaks `rule`; in a bulk `position`, from 0, says where."""

    @property
    def field(self) -> str:
        return str(self.detail.get("field", ""))

    @property
    def rule(self) -> str:
        return str(self.detail.get("rule", ""))

    @property
    def position(self) -> int | None:
        position = self.detail.get("position")
        return position if isinstance(position, int) else None

    @classmethod
    def of(cls, problem: InvalidInput) -> InvalidRequest:
        return cls(problem.error, None, problem.detail)


class TooManyAtOnce(InvalidRequest):
    @property
    def most_events(self) -> int | None:
        return self._told("events")

    @property
    def most_bytes(self) -> int | None:
        return self._told("bytes")

    def _told(self, unit: str) -> int | None:
        told = _MOST(self.rule)
        return int(told[1]) if told and told[2] == unit else None


class Unauthorized(BusError):
    pass


class NotAllowed(BusError):
    pass


class NotFound(BusError):
    pass


class Conflict(BusError):
    pass


class Unavailable(BusError):
    """`attempts` were made before the deadline. `retry_after_s` is what the bus asked for, or 0."""

    def __init__(
        self,
        message: str,
        status: int | None = None,
        attempts: int = 0,
        retry_after_s: float = 0.0,
    ) -> None:
        super().__init__(message, status)
        self.attempts = attempts
        self.retry_after_s = retry_after_s


class NotSent(BusError):
    """`events` are `(topic, event)`, the first thousand of `count`. Those that were under way when
    time was up may be stored after all."""

    def __init__(
        self,
        count: int,
        events: Sequence[tuple[str, dict[str, Any]]],
        reason: BusError | None,
    ) -> None:
        why = f": {reason}" if reason else ""
        super().__init__(f"{count} events were not sent{why}", reason.status if reason else None)
        self.count = count
        self.events = tuple(events)
        self.reason = reason


KINDS: dict[int, type[BusError]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    413: TooManyAtOnce,
    415: InvalidRequest,
    422: Conflict,
}

"""What can go wrong, one class per thing a caller does differently.

RoutemasterError
├── InvalidInput        400  names the field, the rule and, in a bulk, the position
│   ├── TooLarge        413
│   └── UnsupportedType 415
├── Unauthenticated     401
├── Forbidden           403
├── NotFound            404
├── KeyReused           422  an Idempotency-Key came back with another body
├── TooMany             429  a limit of the bus is reached; `retry_after_s` says when to try again
├── StoreUnavailable    503  Redis is down, full, read-only or loading; the answer is "later"
├── Stale                    the routing table moved on: reload it and decide again
└── SettingsError            the environment is wrong; lists every problem at once

`web/errors.py` holds the one table from class to status.
"""

from __future__ import annotations

from collections.abc import Sequence


class RoutemasterError(Exception):
    """Base of everything we raise on purpose. `error` is for people, `detail` for programs."""

    def __init__(self, error: str, detail: dict[str, object] | None = None) -> None:
        super().__init__(error)
        self.error = error
        self.detail = detail


class InvalidInput(RoutemasterError):
    """`field` breaks `rule`. `position` counts from 0 within a bulk."""

    def __init__(self, field: str, rule: str, position: int | None = None) -> None:
        where = field if position is None else f"event {position}: {field}"
        detail: dict[str, object] = {"field": field, "rule": rule}
        if position is not None:
            detail["position"] = position
        super().__init__(f"{where}: {rule}", detail)
        self.field = field
        self.rule = rule
        self.position = position


class TooLarge(InvalidInput):
    pass


class UnsupportedType(InvalidInput):
    pass


class Unauthenticated(RoutemasterError):
    pass


class Forbidden(RoutemasterError):
    pass


class NotFound(RoutemasterError):
    pass


class Conflict(RoutemasterError):
    """What is asked for cannot be done in the state things are in; `error` says what can."""


class KeyReused(RoutemasterError):
    pass


class TooMany(RoutemasterError):
    def __init__(self, error: str, retry_after_s: int = 1) -> None:
        super().__init__(error)
        self.retry_after_s = retry_after_s


class StoreUnavailable(RoutemasterError):
    """`reason` is a word an operator can act on: down, full, read-only, loading, busy."""

    def __init__(self, reason: str) -> None:
        super().__init__("the bus cannot reach its store, try again", {"reason": reason})
        self.reason = reason


class Stale(RoutemasterError):
    def __init__(self) -> None:
        super().__init__("the routing table moved on")


class SettingsError(RoutemasterError):
    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("bad settings:\n" + "\n".join(f"  - {p}" for p in problems))
        self.problems = tuple(problems)

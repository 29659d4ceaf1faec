"""The size of a value as MessagePack, without a MessagePack library: the measure of `data`."""

from __future__ import annotations

from routemaster.domain.event_rules import MAX_DEPTH, NUMBER_RANGE, TOO_DEEP
from routemaster.errors import InvalidInput

NOT_JSON = "must hold only what JSON has: text, finite numbers, true, false, null, lists, objects"


def measure(value: object, field: str, levels: int = MAX_DEPTH) -> int:
    """Bytes; refuses what JSON or MessagePack cannot carry, and deep nesting."""
    if isinstance(value, str):
        return _of_text(value, field)
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, int):
        return _of_int(value, field)
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise InvalidInput(field, NOT_JSON)
        return 9
    if isinstance(value, (dict, list, tuple)):
        if levels == 0:
            raise InvalidInput(field, TOO_DEEP)
        return _of_many(value, field, levels - 1)
    raise InvalidInput(field, NOT_JSON)


def _of_int(value: int, field: str) -> int:
    if -32 <= value < 128:
        return 1
    for bits, size in ((8, 2), (16, 3), (32, 5), (64, 9)):
        if -(1 << bits - 1) <= value < 1 << bits:
            return size
    raise InvalidInput(field, NUMBER_RANGE)


def _of_text(value: str, field: str) -> int:
    try:
        size = len(value) if value.isascii() else len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInput(field, "must be text that UTF-8 can carry") from None
    return size + (1 if size < 32 else 2 if size < 1 << 8 else 3 if size < 1 << 16 else 5)


def _of_many(
    value: dict[object, object] | list[object] | tuple[object, ...], field: str, levels: int
) -> int:
    size = 1 if len(value) < 16 else 3 if len(value) < 1 << 16 else 5
    if not isinstance(value, dict):
        return size + sum(measure(item, field, levels) for item in value)
    for key, item in value.items():
        if not isinstance(key, str):
            raise InvalidInput(field, NOT_JSON)
        size += _of_text(key, field) + measure(item, field, levels)
    return size

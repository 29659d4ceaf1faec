"""JSON as it comes from outside. Whatever is wrong with it is the sender's error, never ours."""

from __future__ import annotations

import msgspec

from routemaster.domain.event_rules import MAX_DEPTH, NUMBER_RANGE, TOO_DEEP
from routemaster.errors import InvalidInput

NOT_UTF8 = "must be UTF-8"

_decode = msgspec.json.Decoder().decode
_pack = msgspec.msgpack.Encoder().encode


def decode_json(body: bytes) -> object:
    try:
        value: object = _decode(body)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput("body", syntax_rule(problem)) from None
    packed_size(value, "body")
    return value


def syntax_rule(problem: Exception) -> str:
    """What to tell the sender when msgspec could not read the text at all."""
    if isinstance(problem, RecursionError):
        return TOO_DEEP
    if isinstance(problem, UnicodeError):
        return NOT_UTF8
    if "out of range" in str(problem):
        return NUMBER_RANGE
    # msgspec calls a lone surrogate before the closing quote "truncated", hence the loose wording.
    return f"must be JSON ({problem})"


def packed_size(value: object, field: str) -> int:
    """Bytes of `value` as MessagePack; refuses what MessagePack cannot carry, and deep nesting."""
    try:
        size = len(_pack(value))
    except RecursionError:
        raise InvalidInput(field, TOO_DEEP) from None
    except OverflowError:
        raise InvalidInput(field, NUMBER_RANGE) from None
    # Each level takes at least one byte, so what is small cannot be deep.
    if size > MAX_DEPTH and _deeper_than(value, MAX_DEPTH):
        raise InvalidInput(field, TOO_DEEP)
    return size


def _deeper_than(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        return levels == 0 or any(_deeper_than(item, levels - 1) for item in value.values())
    if isinstance(value, list):
        return levels == 0 or any(_deeper_than(item, levels - 1) for item in value)
    return False

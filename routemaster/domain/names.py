"""Names that end up in keys, URLs and metrics, so their alphabets are narrow."""

from __future__ import annotations

import re

from routemaster.errors import InvalidInput

TOPIC = re.compile(r"[a-z_]{1,64}")
CLIENT = re.compile(r"[a-z0-9:_-]{1,64}")

# The holder of the root key goes by this name in logs and listings; no client may pose as it.
ROOT = "root"


def parse_topic(value: object, field: str = "topic") -> str:
    # fullmatch, because `$` would let a trailing newline through.
    if not isinstance(value, str) or not TOPIC.fullmatch(value):
        raise InvalidInput(field, "must be 1 to 64 of a-z and _")
    return value


def parse_client(value: object, field: str = "name") -> str:
    if not isinstance(value, str) or not CLIENT.fullmatch(value):
        raise InvalidInput(field, "must be 1 to 64 of a-z, 0-9, colon, _ and -")
    if value == ROOT:
        raise InvalidInput(field, f"the name {ROOT} is reserved")
    return value

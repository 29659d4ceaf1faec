"""A signing secret that a subscriber brings along, in Standard Webhooks' form."""

from __future__ import annotations

import base64
import binascii

from routemaster.domain.signature import PREFIX
from routemaster.errors import InvalidInput

LEAST_BYTES, MOST_BYTES = 24, 64
RULE = f"must be {PREFIX} and {LEAST_BYTES} to {MOST_BYTES} random bytes in base64"


def parse_secret(given: object) -> str:
    if not isinstance(given, str) or not given.startswith(PREFIX):
        raise InvalidInput("secret", RULE)
    try:
        key = base64.b64decode(given.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("secret", RULE) from None
    if not LEAST_BYTES <= len(key) <= MOST_BYTES:
        raise InvalidInput("secret", RULE)
    return given

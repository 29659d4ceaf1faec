"""What a subscriber asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from routemaster.domain.callback import parse_callback
from routemaster.domain.networks import Network
from routemaster.domain.pattern import Pattern, parse_pattern
from routemaster.errors import InvalidInput

SUBSCRIPTION_FIELDS = ("topics", "callback", "uuid", "timeout", "max", "concurrency")
MAX_TOPICS = 256
# Least, most, and what it is when it is not given.
TIMEOUT_MS = (0, 3_600_000, 500)
MAX_EVENTS = (1, 10_000, 100)
CONCURRENCY = (1, 100, 1)

# The user name of HTTP Basic, so no colon.
UUID = re.compile(r"[!-9;-~]{1,256}")


@dataclass(frozen=True, slots=True)
class Subscription:
    topics: tuple[Pattern, ...]
    callback: str  # '' for who pulls
    uuid: str
    timeout_ms: int = 500
    max_events: int = 100
    concurrency: int = 1

    @classmethod
    def parse(
        cls, body: object, *, allow_http: bool, allowed_networks: Sequence[Network]
    ) -> Subscription:
        fields = _known_fields(body)
        callback = ""
        if fields.get("callback") is not None:
            callback = parse_callback(
                fields["callback"], allow_http=allow_http, allowed_networks=allowed_networks
            )
        return cls(
            topics=_topics(fields.get("topics")),
            callback=callback,
            uuid=_uuid(fields, is_required=bool(callback)),
            timeout_ms=integer(fields, "timeout", *TIMEOUT_MS),
            max_events=integer(fields, "max", *MAX_EVENTS),
            concurrency=integer(fields, "concurrency", *CONCURRENCY),
        )


def _known_fields(body: object) -> dict[str, object]:
    if not isinstance(body, dict):
        raise InvalidInput("body", "must be a JSON object")
    for name in body:
        if name not in SUBSCRIPTION_FIELDS:
            raise InvalidInput(str(name)[:64], "is not a field of a subscription")
    return body


def _topics(value: object) -> tuple[Pattern, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_TOPICS:
        raise InvalidInput("topics", f"must be a list of 1 to {MAX_TOPICS} names or patterns")
    # A dict keeps the order, and one of each.
    return tuple(dict.fromkeys(parse_pattern(item, "topics") for item in value))


def _uuid(fields: dict[str, object], *, is_required: bool) -> str:
    value = fields.get("uuid")
    if value is None:
        if is_required:
            raise InvalidInput("uuid", "is required with a callback")
        return ""
    if not isinstance(value, str) or not UUID.fullmatch(value):
        raise InvalidInput("uuid", "must be 1 to 256 printable ASCII characters, no space or colon")
    return value


def integer(fields: dict[str, object], name: str, least: int, most: int, default: int) -> int:
    value = fields.get(name)
    if value is None:
        return default
    # `type`, because True is an int too.
    if type(value) is not int or not least <= value <= most:
        raise InvalidInput(name, f"must be an integer from {least} to {most}")
    return value

"""Events in: checked, and encoded once in the form in which they are delivered.

This is the hot path. msgspec checks types, lengths and ranges while it decodes; only what it cannot
express is checked here, and the slow, well-worded checks run only after a quick one has failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, overload

import msgspec

from routemaster.domain.event_rules import (
    ID,
    MAX_FACET,
    MAX_TIMESTAMP_MS,
    MAX_URL,
    RULES,
    check_facet,
    check_url,
    data_too_large,
)
from routemaster.domain.json_body import packed_size, syntax_rule
from routemaster.domain.names import parse_client
from routemaster.errors import InvalidInput, TooLarge

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EventRules:
    max_data_bytes: int
    max_events: int


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """One event: what is delivered, and what decides where it goes."""

    fragment: bytes
    url: str
    facet: str | None
    target: str | None
    id: str | None


class Events(Sequence[Accepted]):
    """The events of one publish. An `Accepted` is made when one is looked at: the usual bulk goes
    to every subscriber whole, and a thousand objects would cost more than checking it."""

    __slots__ = ("_routing", "fragments", "has_ids", "is_plain")

    def __init__(self, fragments: list[bytes], routing: Sequence[Incoming | Accepted]) -> None:
        self.fragments = fragments
        self._routing = routing
        self.has_ids = any([event.id is not None for event in routing])
        self.is_plain = are_plain(routing)

    @classmethod
    def of(cls, accepted: Sequence[Accepted]) -> Events:
        return cls([event.fragment for event in accepted], accepted)

    def __len__(self) -> int:
        return len(self.fragments)

    @overload
    def __getitem__(self, at: int) -> Accepted: ...
    @overload
    def __getitem__(self, at: slice) -> list[Accepted]: ...
    def __getitem__(self, at: int | slice) -> Accepted | list[Accepted]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        event = self._routing[at]
        return Accepted(self.fragments[at], event.url, event.facet, event.target, event.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Events) and list(self) == list(other)


class Incoming(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["create", "update", "delete", "noop"]
    url: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_URL)]
    timestamp: Annotated[int, msgspec.Meta(ge=0, le=MAX_TIMESTAMP_MS)] | None = None
    data: dict[str, Any] | None = None
    facet: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_FACET)] | None = None
    target: str | None = None
    id: Annotated[str, msgspec.Meta(pattern=ID)] | None = None


class _Delivered(msgspec.Struct, omit_defaults=True, gc=False):
    topic: str
    type: str
    url: str
    t: int
    data: dict[str, Any] | None = None
    facet: str | None = None


_decode_one = msgspec.json.Decoder(Incoming).decode
_decode_many = msgspec.json.Decoder(list[Incoming]).decode
_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines

# `usual_url` over all of a bulk at once, each with a line break. Possessive, because what has been
# matched is never looked at again.
_usual_urls = re.compile(
    r"(?:https://[A-Za-z0-9._-]++(?::[0-9]{1,5})?+(?:/[!\"$->@-~]*+)?+\n)*+", re.ASCII
).fullmatch
_unknown_field = re.compile(r"Object contains unknown field `(.*?)`", re.DOTALL).match
_missing_field = re.compile(r"Object missing required field `(\w+)`").match
# Anchored at the end: an unknown field's name is the sender's text and may look like a path.
_path = re.compile(r" - at `\$(?:\[(\d+)\])?(?:\.(\w+))?[^`]*`\Z").search


def are_plain(events: Sequence[Incoming | Accepted]) -> bool:
    """No facets and no targets: every event goes to the same lanes."""
    return all([event.facet is None and event.target is None for event in events])


def parse_one_or_many(topic: str, body: bytes, rules: EventRules, now_ms: int) -> Events:
    if body.lstrip()[:1] == b"[":
        return _accept_all(topic, _decoded(_decode_many, body, None), rules, now_ms)
    if not body.strip():
        raise InvalidInput("body", "must not be empty")
    event = _decoded(_decode_one, body, None)
    return Events([_accept(topic, event, rules, now_ms)], [event])


def parse_lines(topic: str, body: bytes, rules: EventRules, now_ms: int) -> Events:
    lines = [line for line in body.split(b"\n") if line and not line.isspace()]
    _check_count(len(lines), rules)
    return _accept_all(topic, _decode_lines(lines), rules, now_ms)


def _decode_lines(lines: list[bytes]) -> list[Incoming]:
    try:
        # As one array: a call for each line would take longer than reading it.
        incoming = _decode_many(b"[" + b",".join(lines) + b"]")
        if len(incoming) == len(lines):
            return incoming
    except (ValueError, RecursionError):
        pass
    # One by one, to say which: bad, two on a line, or one over two.
    return [_decoded(_decode_one, line, at) for at, line in enumerate(lines)]


def _accept_all(topic: str, incoming: list[Incoming], rules: EventRules, now_ms: int) -> Events:
    _check_count(len(incoming), rules)
    if _are_usual(incoming, rules):
        return Events(_encode_all(topic, incoming, now_ms), incoming)
    fragments: list[bytes] = []
    try:
        for event in incoming:
            fragments.append(_accept(topic, event, rules, now_ms))
    except InvalidInput as problem:
        raise InvalidInput(problem.field, problem.rule, len(fragments)) from None
    return Events(fragments, incoming)


def _are_usual(incoming: list[Incoming], rules: EventRules) -> bool:
    """Whether nothing about them needs a closer look; checked together, because a call for each
    event costs more than what it does."""
    if not _usual_urls("\n".join([event.url for event in incoming]) + "\n"):
        return False
    if not are_plain(incoming):
        return False
    most = rules.max_data_bytes
    try:
        return all([packed_size(e.data, "data") <= most for e in incoming if e.data is not None])
    except InvalidInput:
        return False


def _encode_all(topic: str, incoming: list[Incoming], now_ms: int) -> list[bytes]:
    delivered = [
        _Delivered(topic, e.type, e.url, now_ms if e.timestamp is None else e.timestamp, e.data)
        for e in incoming
    ]
    # No JSON text holds a line break, and the last line ends with none.
    return _encode_lines(delivered).rstrip(b"\n").split(b"\n")


def _check_count(count: int, rules: EventRules) -> None:
    if not count:
        raise InvalidInput("body", "must hold at least one event")
    if count > rules.max_events:
        raise TooLarge("body", f"must hold at most {rules.max_events} events")


def _accept(topic: str, event: Incoming, rules: EventRules, now_ms: int) -> bytes:
    url, facet, target, data = event.url, event.facet, event.target, event.data
    check_url(url)
    if data is not None and packed_size(data, "data") > rules.max_data_bytes:
        raise data_too_large(rules.max_data_bytes)
    if facet is not None:
        check_facet(facet)
    if target is not None:
        parse_client(target, "target")
    at_ms = now_ms if event.timestamp is None else event.timestamp
    return _encode(_Delivered(topic, event.type, url, at_ms, data, facet))


def _decoded(decode: Callable[[bytes], T], text: bytes, position: int | None) -> T:
    try:
        return decode(text)
    except (ValueError, RecursionError) as problem:
        raise _explained(problem, position) from None


def _explained(problem: Exception, position: int | None) -> InvalidInput:
    text = str(problem)
    where = _path(text)
    if where and where[1]:
        position = int(where[1])
    if unknown := _unknown_field(text):
        # Bounded, because it comes back in the answer and goes into the log.
        return InvalidInput(unknown[1][:64], "is not a field of an event", position)
    if missing := _missing_field(text):
        return InvalidInput(missing[1], "is required", position)
    if where and where[2]:
        in_data = "out of range" in text and where[2] == "data"
        return InvalidInput(
            where[2], syntax_rule(problem) if in_data else RULES[where[2]], position
        )
    if isinstance(problem, msgspec.ValidationError):
        return InvalidInput("body", "must be a JSON object, or a list of them", position)
    return InvalidInput("body", syntax_rule(problem), position)

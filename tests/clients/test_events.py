"""The client refuses before sending exactly what the bus would refuse."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from routemaster.client import Event, InvalidRequest
from routemaster.domain.event import EventRules, parse_one_or_many
from routemaster.domain.packed_size import measure
from routemaster.errors import InvalidInput

RULES = EventRules(max_data_bytes=64, max_events=1)
NOW_MS = 1_700_000_000_000

texts = st.text(max_size=40) | st.text('\ud800\n\x7f\x85\u2028"\\/?#@ é', max_size=6)
urls = (
    st.from_regex(r"https://[a-z.:\[\]@]{0,9}(/[ -~é\u0085\x00-\x1f]{0,9})?", fullmatch=True)
    | texts
    | st.integers(1000, 1030).map(lambda n: ("https://a.example/" + "x" * n)[:n])
)
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8
)
events = st.fixed_dictionaries(
    {"type": st.sampled_from(["create", "update", "delete", "noop", "created", "", None]),
     "url": urls},
    optional={
        "t": st.none() | st.integers(-2, 2) | st.integers(2**53 - 2, 2**53 + 1) | st.floats(0, 1),
        "data": st.none() | st.dictionaries(texts, values, max_size=3) | leaves,
        "facet": st.none() | texts | st.integers(127, 129).map(lambda n: "f" * n),
        "target": st.none() | texts | st.sampled_from(["root", "mailer", "a:b"]),
        "id": st.none() | texts | st.integers(127, 129).map(lambda n: "i" * n),
    },
)  # fmt: skip


def by_the_client(fields: dict[str, Any]) -> bytes | str:
    """What would be delivered, or what is wrong."""
    try:
        line = Event(**fields).encoded()
    except InvalidRequest as problem:
        return problem.field
    return parse_one_or_many("topic", line.encode(), RULES, NOW_MS)[0].fragment


def by_the_bus(fields: dict[str, Any]) -> bytes | str:
    names = {"t": "timestamp"}
    sent = {names.get(name, name): value for name, value in fields.items()}
    try:
        return parse_one_or_many("topic", json.dumps(sent).encode(), RULES, NOW_MS)[0].fragment
    except InvalidInput as problem:
        return problem.field


@given(events)
@example({"type": "update", "url": 'https://a.example/"\\"'})
@example({"type": "update", "url": "https://a.example/", "data": {"a": [[[]]] * 20}})
@example({"type": "update", "url": "https://a.example/", "t": True})
def test_client_and_bus_agree(fields):
    ours, theirs = by_the_client(fields), by_the_bus(fields)
    # With two faults they may name different ones.
    assert ours == theirs or (isinstance(ours, str) and isinstance(theirs, str))


@given(values)
@example(["x"] * 15)
@example(["x"] * 16)
@example([0] * 65536)
@example({str(n): n for n in range(16)})
@example(["x" * n for n in (31, 32, 255, 256, 65535, 65536)])
@example([2**n + d for n in (5, 7, 8, 15, 16, 31, 32, 63) for d in (-1, 0)] + [2**64 - 1])
@example([-(2**n) - d for n in (5, 7, 8, 15, 16, 31, 32) for d in (0, 1)] + [-(2**63)])
def test_a_size_is_messagepacks(value):
    try:
        expected = len(msgpack.packb(value))
    except (OverflowError, ValueError, UnicodeEncodeError):
        with pytest.raises(InvalidInput):
            measure(value, "data")
    else:
        assert measure(value, "data") == expected


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else 1


NO_JSON: list[Any] = [{1: 2}, {"a": b"x"}, {"a": {1}}, {"a": object()}, {"a": nested(20)}]
NO_JSON += [{"a": float("nan")}, {"a": float("inf")}]


@pytest.mark.parametrize("bad", NO_JSON, ids=repr)
def test_what_is_no_json_is_refused_by_name(bad):
    with pytest.raises(InvalidRequest) as caught:
        Event("update", "https://a.example/", data=bad).encoded(1000)
    assert caught.value.field == "data"


def test_a_bus_that_takes_more_data_is_given_more():
    event = Event("update", "https://a.example/", data={"a": "x" * 100})
    with pytest.raises(InvalidRequest, match="at most 64 bytes as MessagePack"):
        event.encoded()
    assert json.loads(event.encoded(200))["data"] == {"a": "x" * 100}

"""Anything at all to every route that takes a body: never a 5xx, and always JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.web.calls import Caller

PATHS = ["/topics/orders", "/subscription", "/api_tokens"]
FIELDS = [
    "type", "url", "timestamp", "data", "facet", "target", "id", "topics", "callback", "uuid",
    "timeout", "max", "concurrency", "name", "token",
]  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        ["create", "https://a.example/x", "orders", "/a*/", "*", "alice", "0123456789abcdef"]
    ),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    TEXTS,
    st.sampled_from([10**30, -(10**30)]),
)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(TEXTS, v, max_size=4), max_leaves=8
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS) | TEXTS, VALUES, max_size=7)
BODIES = st.one_of(
    st.binary(max_size=200),
    st.one_of(OBJECTS, st.lists(OBJECTS, max_size=3), VALUES).map(
        lambda value: json.dumps(value).encode()  # with NaN and Infinity, which are no JSON
    ),
    st.lists(OBJECTS, max_size=3).map(
        lambda rows: b"\n".join(json.dumps(row).encode() for row in rows)
    ),
)
TYPES = st.sampled_from(["application/json", "application/x-ndjson"]) | st.text(
    st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=30
)
HEADERS = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=60)
# The app is shared by the examples on purpose: what one leaves behind must not break the next.
fuzzed = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def harmless(response) -> None:
    assert response.status_code < 500, response.get_data()
    if response.status_code >= 400:
        assert response.get_json()["error"]


@pytest.mark.parametrize("path", PATHS)
@fuzzed
@given(body=BODIES, kind=TYPES)
def test_bodies(app, bus, root, path, body, kind):
    caller = root if path == "/api_tokens" else Caller(root.http, fuzz_token(bus))
    harmless(caller.post(path, body, content_type=kind))


@fuzzed
@given(header=HEADERS | HEADERS.map(lambda h: "Basic " + h) | HEADERS.map(lambda h: "Bearer " + h))
def test_authorization(nobody, header):
    response = nobody.get("/topics", headers={"Authorization": header})
    assert response.status_code == 401
    harmless(response)


@fuzzed
@given(
    method=st.sampled_from(["GET", "POST", "DELETE", "PUT"]),
    start=st.sampled_from(
        ["/", "/topics/", "/subscribers/", "/api_tokens/", "/subscriber/topics/"]
    ),
    rest=st.binary(max_size=40),
)
def test_paths(root, method, start, rest):
    quoted = "".join(f"%{byte:02X}" for byte in rest)
    harmless(root.call(method, start + quoted, data=b""))


def fuzz_token(bus) -> str:
    from tests.busses import give_token, token_of

    known = {client.name for client in bus.directory.fresh().clients.values()}
    return token_of("fuzz") if "fuzz" in known else give_token(bus, "fuzz")

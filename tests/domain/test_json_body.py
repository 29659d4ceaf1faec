import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routemaster.domain.event_rules import MAX_DEPTH
from routemaster.domain.json_body import decode_json
from routemaster.errors import InvalidInput

# No clock decides here: the machine may be busy, and the first draw builds tables.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def nested(levels):
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b"{} {}", "JSON"),
        (b"{'a': 1}", "JSON"),
        (b"NaN", "JSON"),
        (b"[Infinity]", "JSON"),
        (b"[-Infinity]", "JSON"),
        (b"1e999", "64 bits"),
        (b"[-1e999]", "64 bits"),
        (b"9" * 5000, "64 bits"),
        (b"18446744073709551616", "64 bits"),
        (b"[-9223372036854775809]", "64 bits"),
        (b'{"a": {"b": ' + b"9" * 30 + b"}}", "64 bits"),
        (b'"\xff"', "UTF-8"),
        (b'{"\xff": 1}', "UTF-8"),
        (b'"\xed\xa0\x80"', "UTF-8"),  # a surrogate in UTF-8
        (b"\xff\xfe1\x00", "JSON"),  # UTF-16
        (b"\xef\xbb\xbf1", "JSON"),  # a byte order mark
        (rb'"\ud800"', "JSON"),
        (rb'"\ud800 and more text"', "JSON"),
        (rb'{"\udc00 as a key": 1}', "JSON"),
        (b'"\x01"', "JSON"),
        (nested(MAX_DEPTH + 1), "deeper"),
        (nested(500), "deeper"),
        (nested(100_000), "deeper"),
        (b'{"a":' * 100_000, "deeper"),
        (b'[{"a":' * 10 + b"[]" + b"}]" * 10, "deeper"),
    ],
)
def test_refused(body, rule):
    with pytest.raises(InvalidInput, match=rule) as caught:
        decode_json(body)
    assert caught.value.field == "body"


@pytest.mark.parametrize(
    "body",
    [
        nested(MAX_DEPTH),
        b'[{"a":' * 10 + b"1" + b"}]" * 10,
        b"[18446744073709551615, -9223372036854775808, 1e308, 5e-324, -0.0]",
        b' {"a": null}\r\n',
        rb'"\ud83d\ude00 \u0000"',
        '"é 😀"'.encode(),
    ],
)
def test_accepted(body):
    assert decode_json(body) == json.loads(body)


@PATIENT
@given(st.binary() | st.text().map(str.encode) | st.text('[]{}:,"\\u1e.').map(str.encode))
def test_nothing_but_invalid_input_comes_out(body):
    try:
        value = decode_json(body)
    except InvalidInput:
        return
    assert value == json.loads(body)

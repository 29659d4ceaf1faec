import json
import math
import threading

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routemaster.domain.event import Accepted, EventRules, parse_lines, parse_one_or_many
from routemaster.errors import InvalidInput, TooLarge

# No clock decides here: the machine may be busy, and the first draw builds tables.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

RULES = EventRules(max_data_bytes=64, max_events=100)
ROOMY = EventRules(max_data_bytes=1 << 20, max_events=100)
NOW_MS = 1_700_000_000_000
LEAST = {"type": "create", "url": "https://example.com/1"}


def one(rules=RULES, **fields):
    return raw(json.dumps(LEAST | fields).encode(), rules)


def raw(body, rules=RULES):
    [event] = parse_one_or_many("orders", body, rules, NOW_MS)
    return event


def with_data(text):
    return b'{"type":"noop","url":"https://a/1","data":{"a":' + text + b"}}"


def problem(parse, body, rules=RULES):
    with pytest.raises(InvalidInput) as caught:
        parse("orders", body, rules, NOW_MS)
    return caught.value.field, caught.value.rule, caught.value.position


# What is delivered


def test_the_least_event():
    assert one() == Accepted(
        fragment=b'{"topic":"orders","type":"create","url":"https://example.com/1","t":%d}'
        % NOW_MS,
        url="https://example.com/1",
        facet=None,
        target=None,
        id=None,
    )


def test_everything():
    event = one(
        timestamp=0, data={"a": [1.0, None], "é": {}}, facet="eu west é", target="shop", id="#1"
    )
    assert event == Accepted(
        fragment=b'{"topic":"orders","type":"create","url":"https://example.com/1","t":0,'
        b'"data":{"a":[1.0,null],"\xc3\xa9":{}},"facet":"eu west \xc3\xa9"}',
        url="https://example.com/1",
        facet="eu west é",
        target="shop",
        id="#1",
    )


def test_null_is_absent():
    assert one(timestamp=None, data=None, facet=None, target=None, id=None) == one()


def test_empty_data_is_given():
    assert json.loads(one(data={}).fragment)["data"] == {}


# One rule at a time


@pytest.mark.parametrize("kind", ["create", "update", "delete", "noop"])
def test_types(kind):
    assert json.loads(one(type=kind).fragment)["type"] == kind


URLS = [
    "https://a",
    "https://example.com/",
    "https://example.com:8443/a/b",
    "https://example.com/a@b:c;d=e&f,g+h~i'(j)*!$%20\"<>[]^`{|}\\",
    "https://bücher.example/größe",
    "https://example.com/日本",
    "https://[2606:4700::1111]/x",
    "https://[2606:4700::1111]:8443/x",
    "https://127.0.0.1/x",  # nobody dials it
    "https://e/" + "x" * 1014,
    "https://e/" + "é" * 1014,
]


@pytest.mark.parametrize("url", URLS)
def test_urls(url):
    event = one(url=url)
    assert event.url == json.loads(event.fragment)["url"] == url


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("", "1 to 1024"),
        ("https://e/" + "x" * 1015, "1 to 1024"),
        (7, "string"),
        (None, "string"),
        ("http://example.com/", "start with https://"),
        ("HTTPS://example.com/", "start with https://"),
        ("example.com", "start with https://"),
        ("//example.com", "start with https://"),
        (" https://example.com", "start with https://"),
        ("https:/example.com", "start with https://"),
        ("https://", "host"),
        ("https:///a", "host"),
        ("https://:443/a", "host"),
        ("https://a:/", "host"),
        ("https://a:x/", "host"),
        ("https://a:443:443/", "host"),
        ("https://a:123456/", "host"),
        ("https://[]/", "host"),
        ("https://[x]/", "host"),
        ("https://a\\b/", "host"),
        ("https://user@example.com/", "user name"),
        ("https://user:secret@example.com/", "user name"),
        ("https://@/", "user name"),
        ("https://example.com?a=1", "query"),
        ("https://example.com/?", "query"),
        ("https://example.com/#", "fragment"),
        ("https://example.com#a", "fragment"),
        ("https://é/?", "query"),
        *(
            (f"https://example.com/a{blank}", "spaces or control")
            for blank in (" ", "\t", "\n", "\r", "\x00", "\x1f", "\x7f", "\x85", "\xa0", "\u2028")
        ),
        ("https://exa mple.com/", "spaces or control"),
        ("https://example.com\n", "spaces or control"),
    ],
)
def test_what_is_no_url(url, rule):
    field, why, position = problem(parse_one_or_many, json.dumps(LEAST | {"url": url}).encode())
    assert (field, position) == ("url", None)
    assert rule in why


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("type", "created", "one of create, update, delete, noop"),
        ("type", "CREATE", "one of create, update, delete, noop"),
        ("type", "", "one of create, update, delete, noop"),
        ("type", None, "one of create, update, delete, noop"),
        ("type", 1, "one of create, update, delete, noop"),
        ("timestamp", -1, "integer of milliseconds"),
        ("timestamp", 2**53, "integer of milliseconds"),
        ("timestamp", 1.0, "integer of milliseconds"),
        ("timestamp", 1.5, "integer of milliseconds"),
        ("timestamp", True, "integer of milliseconds"),
        ("timestamp", "1", "integer of milliseconds"),
        ("timestamp", [], "integer of milliseconds"),
        ("data", [], "object"),
        ("data", "x", "object"),
        ("data", 7, "object"),
        ("data", False, "object"),
        ("facet", "", "1 to 128"),
        ("facet", "x" * 129, "1 to 128"),
        ("facet", 7, "1 to 128"),
        ("facet", "a\n", "control"),
        ("facet", "\x00", "control"),
        ("facet", "\x7f", "control"),
        ("facet", "\x9f", "control"),
        ("facet", "\u2028", "control"),
        ("target", "", "1 to 64"),
        ("target", "Shop", "1 to 64"),
        ("target", "a|b", "1 to 64"),
        ("target", "shop\n", "1 to 64"),
        ("target", "root", "reserved"),
        ("target", 7, "name of a client"),
        ("id", "", "printable ASCII"),
        ("id", "x" * 129, "printable ASCII"),
        ("id", "a b", "printable ASCII"),
        ("id", "a\n", "printable ASCII"),
        ("id", "é", "printable ASCII"),
        ("id", 7, "printable ASCII"),
        ("topic", "orders", "not a field"),
        ("t", 1, "not a field"),
        ("Type", "create", "not a field"),
        ("", 1, "not a field"),
    ],
)
@pytest.mark.parametrize("position", [None, 0, 2])
def test_refused_by_field_rule_and_position(field, value, rule, position):
    bad = LEAST | {field: value}
    body = bad if position is None else [LEAST] * position + [bad, LEAST]
    got = problem(parse_one_or_many, json.dumps(body).encode())
    assert (got[0], got[2]) == (field, position)
    assert rule in got[1]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("timestamp", 2**53 - 1),
        ("facet", "x" * 128),
        ("facet", "日" * 128),
        ("facet", "a|b c"),
        ("target", "a:b_c-0"),
        ("id", "~" * 128),
    ],
)
def test_the_edges_are_inside(field, value):
    one(**{field: value})


@pytest.mark.parametrize("field", ["type", "url"])
def test_required(field):
    body = json.dumps({name: LEAST[name] for name in LEAST if name != field})
    assert problem(parse_one_or_many, body.encode()) == (field, "is required", None)
    assert problem(parse_one_or_many, f"[{body}]".encode()) == (field, "is required", 0)


@pytest.mark.parametrize("name", ["x` - at `$[7].url", "$[7].url`", "a\nb", "é"])
def test_an_unknown_field_cannot_pretend_to_be_elsewhere(name):
    field, rule, position = problem(parse_one_or_many, json.dumps([LEAST | {name: 1}]).encode())
    assert name.startswith(field)
    assert (rule, position) == ("is not a field of an event", 0)


def test_the_name_of_an_unknown_field_is_cut_short():
    assert problem(parse_one_or_many, json.dumps(LEAST | {"x" * 999: 1}).encode())[0] == "x" * 64


# Data


def test_data_is_measured_as_messagepack():
    fits = {"a": "x" * 59}  # 1 + 2 + 2 + 59
    assert len(msgspec.msgpack.encode(fits)) == 64
    one(data=fits)
    with pytest.raises(InvalidInput, match="data: must be at most 64 bytes") as caught:
        one(data={"a": "x" * 60})
    assert not isinstance(caught.value, TooLarge)


def test_data_of_twenty_levels():
    deep: dict[str, object] = {}
    for _ in range(19):
        deep = {"a": deep}
    one(data=deep)
    with pytest.raises(InvalidInput, match="data: must not be nested deeper than 20"):
        one(data={"a": deep})


@pytest.mark.parametrize("text", [b"18446744073709551615", b"-9223372036854775808", b"1e308"])
def test_the_largest_numbers(text):
    assert json.loads(raw(with_data(text)).fragment)["data"]["a"] == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [b"18446744073709551616", b"-9223372036854775809", b"1e999", b"-1e999", b"9" * 5000, b"9" * 99],
)
def test_numbers_that_messagepack_cannot_carry(text):
    got = problem(parse_one_or_many, with_data(text))
    assert got == ("data", "numbers must fit 64 bits", None)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (b"NaN", "JSON"),
        (b"Infinity", "JSON"),
        (b"-Infinity", "JSON"),
        (rb'"\ud800"', "JSON"),
        (rb'"\ud800 and some more"', "JSON"),
        (rb'{"\udc00 and some more": 1}', "JSON"),
        (b'"\xff"', "UTF-8"),
        (b'"\xed\xa0\x80"', "UTF-8"),
        (b"[" * 100_000, "deeper"),
        (b'{"a":' * 100_000, "deeper"),
        (b"[" * 100_000 + b"]" * 100_000, "deeper"),
    ],
)
def test_data_that_is_no_json(text, rule):
    field, why, _ = problem(parse_one_or_many, with_data(text), ROOMY)
    assert field == "body"
    assert rule in why


def test_huge_timestamps():
    body = b'{"type":"noop","url":"https://a/1","timestamp":' + b"9" * 5000 + b"}"
    assert problem(parse_one_or_many, body)[0] == "timestamp"


def test_deep_nesting_is_refused_on_a_thread_too():
    # A thread's stack is smaller; a decoder that trusted it would take the process down.
    caught = []
    thread = threading.Thread(
        target=lambda: caught.append(problem(parse_one_or_many, with_data(b"[" * 100_000))[0])
    )
    thread.start()
    thread.join()
    assert caught == ["body"]


# One, many, lines


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" \n ",
        b"[]",
        b" [ ] ",
        b"null",
        b"7",
        b'"x"',
        b"true",
        b"{",
        b"[",
        b'[{"type":"noop","url":"https://a"}',
        b'{"type":"noop","url":"https://a"}{}',
        b"[" * 100_000,
        b"{" * 100_000,
        b"\xff",
        b"\xef\xbb\xbf{}",
        b"\x00",
        b"\x0b[]",
    ],
)
def test_bodies_that_hold_no_event(body):
    field, _, position = problem(parse_one_or_many, body)
    assert (field, position) in (("body", None), ("body", 0))


@pytest.mark.parametrize("item", [b"1", b"null", b'"x"', b"[]"])
def test_a_list_holds_objects_only(item):
    body = b"[" + json.dumps(LEAST).encode() + b"," + item + b"]"
    rule = "must be a JSON object, or a list of them"
    assert problem(parse_one_or_many, body) == ("body", rule, 1)


def test_many_come_out_in_order():
    urls = [f"https://example.com/{n}" for n in range(100)]
    body = json.dumps([LEAST | {"url": url} for url in urls]).encode()
    assert [event.url for event in parse_one_or_many("orders", b" \n" + body, RULES, 1)] == urls


def test_lines_are_the_same_events_as_a_list():
    events = [LEAST | {"url": f"https://example.com/{n}", "data": {"n": n}} for n in range(5)]
    lines = "\n".join(json.dumps(event) for event in events)
    expected = parse_one_or_many("orders", json.dumps(events).encode(), RULES, NOW_MS)
    for text in (lines, lines + "\n", lines.replace("\n", "\r\n") + "\r\n", f"\n \n{lines}\n\n\n"):
        assert parse_lines("orders", text.encode(), RULES, NOW_MS) == expected


@pytest.mark.parametrize("body", [b"", b"\n", b" \r\n\n"])
def test_lines_without_an_event(body):
    assert problem(parse_lines, body) == ("body", "must hold at least one event", None)


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b'{"type":"x","url":"https://a"}', "type"),
        (b'{"type":"noop","url":"https://a?"}', "url"),
        (b'{"type":"noop"}', "url"),
        (b'{"type":"noop","url":"https://a","x":1}', "x"),
        (b'{"type":"noop","url":"https://a"', "body"),
        (b'{"type":"noop","url":"https://a"} {"type":"noop","url":"https://a"}', "body"),
        (b"[]", "body"),
        (b"null", "body"),
        (b'"\xff"', "body"),
        (b"[" * 100_000, "body"),
    ],
)
def test_a_bad_line_is_named_by_its_position_among_events(line, field):
    good = json.dumps(LEAST).encode()
    got = problem(parse_lines, b"\n".join([good, b"", good, line, good]))
    assert (got[0], got[2]) == (field, 2)


@pytest.mark.parametrize("count", [100, 101])
def test_no_more_than_so_many_events(count):
    text = json.dumps(LEAST)
    array, lines = f"[{','.join([text] * count)}]".encode(), "\n".join([text] * count).encode()
    for parse, body in ((parse_one_or_many, array), (parse_lines, lines)):
        if count <= RULES.max_events:
            assert len(parse("orders", body, RULES, NOW_MS)) == count
        else:
            with pytest.raises(TooLarge, match="body: must hold at most 100 events"):
                parse("orders", body, RULES, NOW_MS)


# Properties

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)
FACET = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=128
)
EVENT = st.fixed_dictionaries(
    {"type": st.sampled_from(["create", "update", "delete", "noop"]), "url": st.sampled_from(URLS)},
    optional={
        "timestamp": st.none() | st.integers(0, 2**53 - 1),
        "data": st.none() | st.dictionaries(TEXT, JSON, max_size=3),
        "facet": st.none() | FACET,
        "target": st.none() | st.from_regex(r"shop[a-z0-9:_-]{0,9}", fullmatch=True),
        "id": st.none() | st.from_regex(r"[!-~]{1,128}", fullmatch=True),
    },
)


def delivered(event):
    expected = {"topic": "orders", "type": event["type"], "url": event["url"]}
    at_ms = event.get("timestamp")
    expected["t"] = NOW_MS if at_ms is None else at_ms
    return expected | {k: event[k] for k in ("data", "facet") if event.get(k) is not None}


def identical(a, b):
    """Equality that tells 1 from 1.0 and from True, and 0.0 from -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(identical(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(identical, a, b))
    return a == b and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))


@PATIENT
@given(st.lists(EVENT, min_size=1, max_size=5), st.booleans(), st.booleans())
def test_what_is_accepted_is_delivered_with_the_same_values(events, ascii_only, as_lines):
    texts = [json.dumps(event, ensure_ascii=ascii_only) for event in events]
    if as_lines:
        accepted = parse_lines("orders", "\n".join(texts).encode(), ROOMY, NOW_MS)
    else:
        accepted = parse_one_or_many("orders", f"[{','.join(texts)}]".encode(), ROOMY, NOW_MS)
    for event, got in zip(events, accepted, strict=True):
        assert identical(json.loads(got.fragment), delivered(event))
        assert b"\n" not in got.fragment
        assert (got.url, got.facet) == (event["url"], event.get("facet"))
        assert (got.target, got.id) == (event.get("target"), event.get("id"))


def survives(body):
    for parse in (parse_one_or_many, parse_lines):
        try:
            accepted = parse("orders", body, RULES, NOW_MS)
        except InvalidInput:
            continue
        for event in accepted:
            assert json.loads(event.fragment)["url"] == event.url


@PATIENT
@given(st.binary() | st.text('[]{}:,"\\ud8e1.-\n').map(str.encode))
def test_no_bytes_bring_out_anything_but_invalid_input(body):
    survives(body)


PIECES = [b"", b"[", b"{", b'"', b"\\ud800", b"\xff", b"\x00", b"1e999", b"9" * 400, b"null", b"\n"]


@PATIENT
@given(
    st.lists(EVENT, min_size=1, max_size=2),
    st.lists(
        st.tuples(
            st.floats(0, 1), st.integers(0, 9), st.sampled_from(PIECES) | st.binary(max_size=3)
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_no_damaged_events_bring_out_anything_but_invalid_input(events, damages):
    body = json.dumps(events if len(events) > 1 else events[0]).encode()
    for where, width, piece in damages:
        at = int(where * len(body))
        body = body[:at] + piece + body[at + width :]
    survives(body)


WRONG = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | JSON


@PATIENT
@given(EVENT, st.dictionaries(st.sampled_from([*LEAST, "timestamp", "data", "facet", "x"]), WRONG))
def test_no_wrong_values_bring_out_anything_but_invalid_input(event, wrong):
    survives(json.dumps(event | wrong).encode())

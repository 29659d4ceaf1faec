import pytest

from routemaster.domain.pattern import Pattern
from routemaster.domain.subscription import Subscription
from routemaster.errors import InvalidInput

LEAST = {"topics": ["orders"], "callback": "https://example.com/in", "uuid": "secret"}


def parse(body):
    return Subscription.parse(body, allow_http=False, allowed_networks=())


def test_the_least_one_can_ask_for():
    assert parse(LEAST) == Subscription(
        topics=(Pattern("orders"),),
        callback="https://example.com/in",
        uuid="secret",
        timeout_ms=500,
        max_events=100,
        concurrency=1,
    )


def test_everything():
    asked = LEAST | {"timeout": 0, "max": 10_000, "concurrency": 100, "topics": ["a*", "/b+/"]}
    got = parse(asked)
    assert (got.timeout_ms, got.max_events, got.concurrency) == (0, 10_000, 100)
    assert [topic.text for topic in got.topics] == ["a*", "/b+/"]


def test_null_is_the_default():
    assert parse(LEAST | {"timeout": None, "max": None, "concurrency": None}) == parse(LEAST)


def test_duplicate_topics_collapse_in_order():
    got = parse(LEAST | {"topics": ["b", "a", "b", "a*", "a*"]})
    assert [topic.text for topic in got.topics] == ["b", "a", "a*"]


@pytest.mark.parametrize("body", [None, [], [LEAST], "x", 7, True])
def test_only_an_object_will_do(body):
    with pytest.raises(InvalidInput, match="body: must be a JSON object"):
        parse(body)


@pytest.mark.parametrize("field", ["topics", "uuid"])
@pytest.mark.parametrize("change", ["absent", "null"])
def test_required(field, change):
    body = LEAST | {field: None}
    if change == "absent":
        del body[field]
    with pytest.raises(InvalidInput) as caught:
        parse(body)
    assert caught.value.field == field


@pytest.mark.parametrize("change", [{}, {"callback": None}, {"callback": None, "uuid": None}])
def test_who_has_no_callback_pulls_and_needs_no_uuid(change):
    got = parse({"topics": ["orders"], **change})
    assert (got.callback, got.uuid) == ("", "")


@pytest.mark.parametrize("name", ["topic", "Timeout", "timeout_ms", ""])
def test_an_unknown_field_is_named(name):
    with pytest.raises(InvalidInput, match="not a field") as caught:
        parse(LEAST | {name: 1})
    assert caught.value.field == name


def test_the_name_of_an_unknown_field_is_cut_short():
    with pytest.raises(InvalidInput) as caught:
        parse(LEAST | {"x" * 1000: 1})
    assert caught.value.field == "x" * 64


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("topics", []),
        ("topics", "orders"),
        ("topics", {"orders": 1}),
        ("topics", ["x"] * 257),
        ("topics", ["orders", None]),
        ("topics", ["orders", 1]),
        ("topics", ["Orders"]),
        ("topics", ["/(/"]),
        ("callback", "http://example.com"),
        ("callback", "https://127.1/"),
        ("callback", 7),
        ("uuid", ""),
        ("uuid", "x" * 257),
        ("uuid", "a:b"),
        ("uuid", "a b"),
        ("uuid", "a\n"),
        ("uuid", "é"),
        ("uuid", "\x7f"),
        ("uuid", 7),
        ("timeout", -1),
        ("timeout", 3_600_001),
        ("max", 0),
        ("max", 10_001),
        ("concurrency", 0),
        ("concurrency", 101),
        *((field, value) for field in ("timeout", "max", "concurrency") for value in (True, "1")),
        *((field, value) for field in ("timeout", "max", "concurrency") for value in (1.0, [1])),
    ],
)
def test_refused(field, value):
    with pytest.raises(InvalidInput) as caught:
        parse(LEAST | {field: value})
    assert caught.value.field == field


@pytest.mark.parametrize("uuid", ["x", "~" * 256, "9;", "a/b?c#d%e"])
def test_uuids(uuid):
    assert parse(LEAST | {"uuid": uuid}).uuid == uuid

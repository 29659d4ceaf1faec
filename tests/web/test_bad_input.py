"""Bad input: 4xx, JSON that names the field and the rule, and nothing of it is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from routemaster.web import create_app
from tests.busses import token_of
from tests.web.calls import EVENT, SUBSCRIPTION, Caller, dump

LONG = "x" * 5000
WRONG_TYPES: tuple[object, ...] = (True, 7, 1.5, "", [], [1], {}, {"a": 1})
HUGE = 10**400


def raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def event(**changes: object) -> dict[str, object]:
    return {**EVENT, **changes}


def subscription(**changes: object) -> dict[str, object]:
    return {**SUBSCRIPTION, **changes}


def without(body: Mapping[str, object], field: str) -> dict[str, object]:
    return {name: value for name, value in body.items() if name != field}


def wrong_types(field: str, right: tuple[type, ...]) -> list[object]:
    # `type`, because True is an int too.
    return [value for value in WRONG_TYPES if type(value) not in right]


def deep(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


# Whatever the route: (name, body, field).
ANY_BODY: list[tuple[str, bytes, str]] = [
    ("empty", b"", "body"),
    ("blank", b" \n ", "body"),
    ("not JSON", b"{type: create}", "body"),
    ("cut off", b'{"type": "create"', "body"),
    ("two values", b"[] []", "body"),
    ("a string", b'"text"', "body"),
    ("a number", b"5", "body"),
    ("null", b"null", "body"),
    ("not UTF-8", b'{"type": "\xff\xfe"}', "body"),
    ("UTF-16", '{"type": "create"}'.encode("utf-16"), "body"),
    ("a byte order mark", b"\xef\xbb\xbf{}", "body"),
    ("deep", deep(100_000), "body"),
    ("NaN", b"NaN", "body"),
    ("a lone surrogate", b'"\\ud800"', "body"),
]

BAD_EVENTS: list[tuple[object, str]] = [
    ([], "body"),
    ([[EVENT]], "body"),
    ([EVENT, 5], "body"),
    ({}, "type"),
    (without(EVENT, "type"), "type"),
    (without(EVENT, "url"), "url"),
    (event(shoe_size=44), "shoe_size"),
    (event(**{"a\nb": 1}), "a\nb"),
    *((event(type=value), "type") for value in wrong_types("type", ())),
    (event(type="CREATE"), "type"),
    (event(type="create\n"), "type"),
    (event(type=None), "type"),
    *((event(url=value), "url") for value in wrong_types("url", ())),
    (event(url=None), "url"),
    (event(url="http://pub.example/1"), "url"),
    (event(url="https://pub.example/1?a=b"), "url"),
    (event(url="https://pub.example/1#a"), "url"),
    (event(url="https://pub.example/1\n"), "url"),
    (event(url="https://pub.example/a b"), "url"),
    (event(url="https://"), "url"),
    (event(url="https://user:pw@pub.example/"), "url"),
    (event(url="https://pub.example/" + LONG), "url"),
    *((event(timestamp=value), "timestamp") for value in wrong_types("timestamp", (int,))),
    (event(timestamp=-1), "timestamp"),
    (event(timestamp=2**53), "timestamp"),
    *((event(data=value), "data") for value in wrong_types("data", (dict,))),
    (event(data={"a": "x" * 64}), "data"),
    (event(data={"a": 2**64}), "data"),
    (event(data={"a": {"b": json.loads(deep(30))}}), "data"),
    *((event(facet=value), "facet") for value in wrong_types("facet", (str,))),
    (event(facet=""), "facet"),
    (event(facet="a\nb"), "facet"),
    (event(facet=LONG), "facet"),
    *((event(target=value), "target") for value in wrong_types("target", (str,))),
    (event(target=""), "target"),
    (event(target="UPPER"), "target"),
    (event(target="bob\n"), "target"),
    (event(target=LONG), "target"),
    (event(target="stranger"), "target"),
    *((event(id=value), "id") for value in wrong_types("id", (str,))),
    (event(id=""), "id"),
    (event(id="a b"), "id"),
    (event(id="a\n"), "id"),
    (event(id=LONG), "id"),
]
# What json.dumps would not write.
RAW_EVENTS: list[tuple[str, str]] = [
    (f'{{"type": "create", "url": "https://a.example/", "timestamp": {HUGE}}}', "timestamp"),
    ('{"type": "create", "url": "https://a.example/", "timestamp": NaN}', "body"),
    ('{"type": "create", "url": "https://a.example/", "data": {"a": Infinity}}', "body"),
    ('{"type": "create", "url": "https://a.example/", "data": {"a": -Infinity}}', "body"),
    ('{"type": "create", "url": "https://a.example/", "data": {"a": 1e999}}', "data"),
    (f'{{"type": "create", "url": "https://a.example/", "data": {{"a": {HUGE}}}}}', "data"),
    ('{"type": "create", "url": "https://a.example/", "data": {"a": "\\ud800"}}', "body"),
    ('{"type": "create", "url": "https://a.example/\\udc00"}', "body"),
    ('{"type": "create", "url": "https://a.example/\ud800"}', "body"),
    ('{"type": "create", "url": "https://a.example/", "\\ud800": 1}', "body"),
]

BAD_REFUSALS: list[tuple[object, str]] = [
    ([], "body"),
    ({"wait": 1}, "wait"),
    *(({"delay": value}, "delay") for value in (-1, 3_600_001, 2**63, 1.5, "1", True)),
]

BAD_SUBSCRIPTIONS: list[tuple[object, str]] = [
    ([], "body"),
    ([SUBSCRIPTION], "body"),
    ({}, "topics"),
    (subscription(shoe_size=44), "shoe_size"),
    # Without a callback it pulls.
    *((without(SUBSCRIPTION, field), field) for field in ("topics", "uuid")),
    *((subscription(**{field: None}), field) for field in ("topics", "uuid")),
    *((subscription(callback=None, uuid=value), "uuid") for value in ("", "a b", 7, LONG)),
    *((subscription(topics=value), "topics") for value in wrong_types("topics", ())),
    *((subscription(topics=[value]), "topics") for value in wrong_types("topics", ())),
    (subscription(topics=[None]), "topics"),
    (subscription(topics=["Orders"]), "topics"),
    (subscription(topics=["orders\n"]), "topics"),
    (subscription(topics=["orders", "a b"]), "topics"),
    (subscription(topics=["x" * 65]), "topics"),
    (subscription(topics=["orders"] * 257), "topics"),
    (subscription(topics=["/(/"]), "topics"),
    (subscription(topics=["/a{1000}{1000}/"]), "topics"),
    (subscription(topics=["/\n/"]), "topics"),
    (subscription(topics=["[a-z]*"]), "topics"),
    *((subscription(callback=value), "callback") for value in wrong_types("callback", ())),
    (subscription(callback="ftp://sub.example/"), "callback"),
    (subscription(callback="https://sub.example/?a=b"), "callback"),
    (subscription(callback="https://sub.example/\n"), "callback"),
    (subscription(callback="https://user@sub.example/"), "callback"),
    (subscription(callback="https://169.254.169.254/"), "callback"),
    (subscription(callback="https://10.0.0.1/"), "callback"),
    (subscription(callback="https://sub.example:99999/"), "callback"),
    (subscription(callback="https://sub.example/" + LONG), "callback"),
    *((subscription(uuid=value), "uuid") for value in wrong_types("uuid", ())),
    (subscription(uuid="a:b"), "uuid"),
    (subscription(uuid="a b"), "uuid"),
    (subscription(uuid="a\n"), "uuid"),
    (subscription(uuid="ä"), "uuid"),
    (subscription(uuid=LONG), "uuid"),
    *(
        (subscription(**{field: value}), field)
        for field in ("timeout", "max", "concurrency")
        for value in (*wrong_types(field, (int,)), -1, 10**8, 2**63)
    ),
    (subscription(max=0), "max"),
    (subscription(concurrency=0), "concurrency"),
]
RAW_SUBSCRIPTIONS: list[tuple[str, str]] = [
    (f'{{"topics": ["a"], "callback": "https://a.example", "uuid": "u", "max": {HUGE}}}', "body"),
    ('{"topics": ["a"], "callback": "https://a.example", "uuid": "u", "max": NaN}', "body"),
    ('{"topics": ["\\ud800"], "callback": "https://a.example", "uuid": "u"}', "body"),
    ('{"topics": ["a"], "callback": "https://a.example/\\ud800", "uuid": "u"}', "body"),
    ('{"\\ud800": 1}', "body"),
]

BAD_TOKENS: list[tuple[object, str]] = [
    ([], "body"),
    ([{"name": "carol"}], "body"),
    ({}, "name"),
    ({"name": "carol", "shoe_size": 44}, "shoe_size"),
    *(({"name": value}, "name") for value in wrong_types("name", ())),
    ({"name": None}, "name"),
    ({"name": "Carol"}, "name"),
    ({"name": "carol\n"}, "name"),
    ({"name": "ca rol"}, "name"),
    ({"name": "root"}, "name"),
    ({"name": "x" * 65}, "name"),
    *(({"name": "carol", "token": value}, "token") for value in wrong_types("token", ())),
    ({"name": "carol", "token": "too-short"}, "token"),
    ({"name": "carol", "token": "0123456789abcdef\n"}, "token"),
    ({"name": "carol", "token": "0123456789abcdef:"}, "token"),
    ({"name": "carol", "token": "0123456789abcdef/"}, "token"),
    ({"name": "carol", "token": "0123456789 abcdef"}, "token"),
    ({"name": "carol", "token": "0123456789abcdeé"}, "token"),
    ({"name": "carol", "token": LONG}, "token"),
    ({"name": "carol", "token": token_of("alice")}, "token"),
]


def encoded(rows: list[tuple[object, str]]) -> list[tuple[bytes, str]]:
    return [(json.dumps(body).encode(), field) for body, field in rows]


PUBLISHED = encoded(BAD_EVENTS) + [(raw(text), field) for text, field in RAW_EVENTS]
SUBSCRIBED = encoded(BAD_SUBSCRIPTIONS) + [(raw(text), f) for text, f in RAW_SUBSCRIPTIONS]


@pytest.fixture
def busy(alice, bob, root):
    """A topic, a subscriber, and one whose pattern catches every new topic."""
    assert alice.publish("orders", EVENT).status_code == 204
    assert bob.follow("*").status_code == 204


def refused(caller, server, path, body, **options):
    before = dump(server)
    response = caller.post(path, body, **options)
    assert 400 <= response.status_code < 500, body[:200]
    assert response.content_type == "application/json"
    assert dump(server) == before, body[:200]
    return response.status_code, response.get_json()


def check(caller, server, path, rows):
    for body, field in rows:
        status, answer = refused(caller, server, path, body)
        shown = (status, answer["detail"]["field"])
        assert shown == (400, field), (body[:200], answer)
        assert answer["detail"]["rule"] in answer["error"]


@pytest.mark.usefixtures("busy")
class TestBodies:
    @pytest.mark.parametrize("path", ["/topics/orders", "/subscription", "/subscriber"])
    def test_whatever_is_no_object(self, alice, redis_server, path):
        check(alice, redis_server, path, [(body, field) for _, body, field in ANY_BODY])

    def test_whatever_is_no_object_for_root(self, root, redis_server):
        check(root, redis_server, "/api_tokens", [(body, field) for _, body, field in ANY_BODY])

    def test_events(self, alice, redis_server):
        check(alice, redis_server, "/topics/orders", PUBLISHED)

    def test_events_to_a_topic_that_they_would_create(self, alice, redis_server):
        check(alice, redis_server, "/topics/brand_new", PUBLISHED)

    def test_subscriptions(self, alice, redis_server):
        check(alice, redis_server, "/subscription", SUBSCRIBED)

    def test_replacing_a_subscription_by_a_bad_one_keeps_it(self, bob, redis_server):
        check(bob, redis_server, "/subscription", SUBSCRIBED)

    def test_refusals_of_a_pulled_batch(self, alice, redis_server):
        path = "/subscriber/batch/any/refuse"
        check(alice, redis_server, path, encoded(BAD_REFUSALS))

    def test_tokens(self, root, redis_server):
        check(root, redis_server, "/api_tokens", encoded(BAD_TOKENS))

    def test_the_root_key_is_no_clients_token(self, root, redis_server):
        body = json.dumps({"name": "carol", "token": root.token}).encode()
        check(root, redis_server, "/api_tokens", [(body, "token")])

    def test_lines(self, alice, redis_server):
        good = json.dumps(EVENT).encode()
        for bad, field in PUBLISHED:
            if b"\n" in bad or bad.startswith(b"["):
                continue
            body = b"\n".join([good, good, bad, good])
            status, answer = refused(
                alice, redis_server, "/topics/orders", body, content_type="application/x-ndjson"
            )
            detail = answer["detail"]
            assert (status, detail["field"], detail["position"]) == (400, field, 2), bad


@pytest.mark.usefixtures("busy")
class TestNames:
    BAD = ("Orders", "orders%0A", "orders%00", "a%20b", "x" * 65, "%F0%9F%9A%8C", "%ff", "a.b", "*")

    @pytest.mark.parametrize("name", BAD)
    def test_of_topics(self, alice, redis_server, name):
        body = json.dumps(EVENT).encode()
        status, answer = refused(alice, redis_server, f"/topics/{name}", body)
        assert (status, answer["detail"]["field"]) == (400, "topic")

    @pytest.mark.parametrize("path", ["/topics/", "/subscription/topics/", "/subscriber/topics/"])
    def test_of_topics_to_delete_or_leave(self, alice, redis_server, path):
        before = dump(redis_server)
        for name in self.BAD:
            response = alice.delete(path + name)
            assert (response.status_code, response.get_json()["detail"]["field"]) == (400, "topic")
        assert dump(redis_server) == before

    def test_of_subscribers(self, root, redis_server):
        before = dump(redis_server)
        for name in ("Bob", "bob%0A", "x" * 65, "root", "%ff"):
            response = root.delete(f"/subscribers/{name}")
            assert (response.status_code, response.get_json()["detail"]["field"]) == (400, "name")
        assert dump(redis_server) == before

    @pytest.mark.parametrize("text", ["0", "-1", "86401", "1.5", "\xb2", "9" * 400])
    def test_of_times_to_remember(self, alice, redis_server, text):
        status, answer = refused(
            alice, redis_server, "/topics/orders", json.dumps(EVENT).encode(),
            headers={"Routemaster-Remember": text},
        )  # fmt: skip
        assert (status, answer["detail"]["field"]) == (400, "Routemaster-Remember")

    @pytest.mark.parametrize("key", ["x" * 257, "a\tb", "caf\xe9"])
    def test_of_idempotency_keys(self, alice, redis_server, key):
        status, answer = refused(
            alice, redis_server, "/topics/orders", json.dumps(EVENT).encode(),
            headers={"Idempotency-Key": key},
        )  # fmt: skip
        assert (status, answer["detail"]["field"]) == (400, "Idempotency-Key")


@pytest.mark.usefixtures("busy")
class TestContentTypes:
    WRONG = ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", ";", "é")

    @pytest.mark.parametrize("kind", WRONG)
    @pytest.mark.parametrize("path", ["/topics/orders", "/subscription"])
    def test_wrong_or_missing(self, alice, redis_server, path, kind):
        body = json.dumps(EVENT if "topics" in path else SUBSCRIPTION).encode()
        status, answer = refused(alice, redis_server, path, body, content_type=kind)
        assert (status, answer["detail"]["field"]) == (415, "Content-Type")

    @pytest.mark.parametrize("sign", ["Origin", "Sec-Fetch-Site"])
    @pytest.mark.parametrize("path", ["/topics/orders", "/subscription"])
    def test_missing_from_a_browser(self, alice, redis_server, path, sign):
        body = json.dumps(EVENT if "topics" in path else SUBSCRIPTION).encode()
        status, answer = refused(
            alice, redis_server, path, body, content_type="", headers={sign: "null"}
        )
        assert (status, answer["detail"]["field"]) == (415, "Content-Type")

    def test_missing_from_a_program(self, alice):
        assert alice.publish("orders", EVENT, content_type="").status_code == 204
        assert alice.post("/subscription", SUBSCRIPTION, content_type="").status_code == 204

    def test_wrong_for_a_token(self, root, redis_server):
        status, answer = refused(
            root, redis_server, "/api_tokens", b'{"name": "carol"}', content_type="text/plain"
        )
        assert (status, answer["detail"]["field"]) == (415, "Content-Type")

    def test_parameters_do_not_matter(self, alice):
        kind = "Application/JSON; charset=utf-8"
        assert alice.publish("orders", EVENT, content_type=kind).status_code == 204
        assert alice.post("/subscription", SUBSCRIPTION, content_type=kind).status_code == 204


class TestSizes:
    @pytest.mark.parametrize("path", ["/topics/orders", "/subscription"])
    def test_a_body_over_the_limit(self, make_bus, settings, redis_server, alice, path):
        app = create_app(make_bus(replace(settings, max_body_bytes=1024)))
        caller = Caller(app.test_client(), alice.token)
        fits = json.dumps([EVENT]).encode().ljust(1024)
        status, answer = refused(caller, redis_server, path, fits + b" ")
        assert (status, answer["detail"]["field"]) == (413, "body")
        assert "1024 bytes" in answer["error"]
        assert caller.post("/topics/orders", fits).status_code == 204

    def test_more_events_than_one_publish_may_hold(self, make_bus, settings, redis_server, alice):
        app = create_app(make_bus(replace(settings, max_bulk_events=3)))
        caller = Caller(app.test_client(), alice.token)
        body = json.dumps([EVENT] * 4).encode()
        status, answer = refused(caller, redis_server, "/topics/orders", body)
        assert (status, answer["detail"]["field"]) == (413, "body")

    def test_data_is_measured_as_messagepack(self, alice, redis_server):
        # A map of one, a key of one letter, a string of up to 31, and one of 32 or more: 5 bytes
        # around the text.
        assert alice.publish("orders", event(data={"a": "x" * 59})).status_code == 204
        body = json.dumps(event(data={"a": "x" * 60})).encode()
        check(alice, redis_server, "/topics/orders", [(body, "data")])
        # Two characters in JSON, one byte in MessagePack.
        assert alice.publish("orders", event(data={"a": "\n" * 59})).status_code == 204


class TestPathsAndMethods:
    @pytest.mark.parametrize(
        "path",
        [
            "/", "/nothing", "/topics/", "/topics/orders/", "/topics/a/b", "/topics/a%2Fb",
            "//topics", "/topics//orders", "/subscription/", "/api_tokens/", "/%ff", "/%00",
            "/..", "/topics/../api_tokens", "/" + "x" * 5000, "/TOPICS", "/health/",
        ],
    )  # fmt: skip
    def test_unknown_paths(self, alice, path):
        response = alice.get(path)
        assert response.status_code == 404
        assert response.get_json() == {"error": "not found"}

    @pytest.mark.parametrize(
        ("method", "path", "allowed"),
        [
            ("PUT", "/topics/orders", {"POST", "DELETE", "OPTIONS"}),
            ("GET", "/topics/orders", {"POST", "DELETE", "OPTIONS"}),
            ("PATCH", "/subscription", {"POST", "DELETE", "OPTIONS"}),
            ("POST", "/topics", {"GET", "HEAD", "OPTIONS"}),
            ("BREW", "/pulse", {"GET", "HEAD", "OPTIONS"}),
            ("DELETE", "/health", {"GET", "HEAD", "OPTIONS"}),
        ],
    )
    def test_unknown_methods(self, alice, method, path, allowed):
        response = alice.call(method, path)
        assert response.status_code == 405
        assert response.get_json() == {"error": "method not allowed"}
        assert set(response.headers["Allow"].split(", ")) == allowed

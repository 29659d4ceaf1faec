"""Bulk, ids, targets and limits, as publishers see them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from routemaster.web import create_app
from tests.web.calls import EVENT, Caller, dump

LINES = "application/x-ndjson"


def number(n: int, **fields: object) -> dict[str, object]:
    return {**EVENT, "url": f"https://pub.example/{n}", **fields}


def lines(*events: object) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@pytest.fixture
def bob(client_named):
    """Follows everything."""
    caller: Caller = client_named("bob")
    assert caller.follow("orders").status_code == 204
    return caller


def duplicates(response) -> str | None:
    assert response.status_code == 204
    value: str | None = response.headers.get("Routemaster-Duplicates")
    return value


@pytest.fixture
def limited(make_bus, settings):
    """limited(caller, max_fanout=4) is the same caller on a bus with other limits."""

    def make(caller: Caller, **limits: int) -> Caller:
        app = create_app(make_bus(replace(settings, **limits)))
        return Caller(app.test_client(), caller.token)

    return make


class TestBulk:
    def test_arrays_and_lines(self, alice, bob):
        assert alice.publish("orders", number(1), number(2)).status_code == 204
        body = lines(number(3), number(4)) + b"\n \r\n" + lines(number(5)).strip()
        assert alice.post("/topics/orders", body, content_type=LINES).status_code == 204
        assert bob.queued() == 5

    @pytest.mark.parametrize("at", [0, 1, 4])
    def test_one_bad_event_and_none_is_stored(self, alice, bob, redis_server, at):
        events = [number(n) for n in range(5)]
        events[at]["url"] = "http://pub.example/"
        before = dump(redis_server)
        array = alice.publish("orders", *events)
        by_line = alice.post("/topics/orders", lines(*events), content_type=LINES)
        for response in (array, by_line):
            assert response.status_code == 400
            assert response.get_json()["detail"] == {
                "field": "url", "rule": "must start with https://", "position": at,
            }  # fmt: skip
            assert response.get_json()["error"] == f"event {at}: url: must start with https://"
        assert dump(redis_server) == before

    def test_an_array_of_one(self, alice, bob):
        assert alice.post("/topics/orders", [EVENT]).status_code == 204
        assert bob.queued() == 1


class TestIds:
    def test_the_same_key_twice_is_one_event(self, alice, bob):
        headers = {"Idempotency-Key": "k1"}
        assert duplicates(alice.publish("orders", EVENT, headers=headers)) is None
        assert duplicates(alice.publish("orders", EVENT, headers=headers)) == "1"
        assert bob.queued() == 1

    @pytest.mark.parametrize(("remember", "seconds"), [(None, 86_400), ("86400", 86_400), ("7", 7)])
    def test_for_how_long_is_the_publishers_to_say(self, alice, redis_server, remember, seconds):
        headers = {"Idempotency-Key": "k1"}
        if remember:
            headers["Routemaster-Remember"] = remember
        alice.publish("orders", number(1, id="a"), headers=headers)
        with redis_server.client() as redis:
            kept = [redis.ttl(key) for key in redis.scan_iter("*:ids:orders:*")]
        assert len(kept) == 2 and all(seconds - 5 <= each <= seconds for each in kept)

    def test_the_same_key_with_another_body(self, alice, bob, redis_server):
        headers = {"Idempotency-Key": "k1"}
        alice.publish("orders", EVENT, headers=headers)
        before = dump(redis_server)
        response = alice.publish("orders", number(2), headers=headers)
        assert response.status_code == 422
        assert "Idempotency-Key" in response.get_json()["error"]
        assert dump(redis_server) == before

    def test_a_key_belongs_to_its_topic(self, alice, bob, client_named):
        headers = {"Idempotency-Key": "k1"}
        alice.publish("orders", EVENT, headers=headers)
        assert duplicates(alice.publish("bills", EVENT, headers=headers)) is None
        assert duplicates(client_named("carol").publish("posts", EVENT, headers=headers)) is None

    def test_a_refused_publish_does_not_use_up_its_key(self, alice, bob):
        headers = {"Idempotency-Key": "k1"}
        assert alice.publish("orders", {**EVENT, "type": "x"}, headers=headers).status_code == 400
        assert duplicates(alice.publish("orders", EVENT, headers=headers)) is None
        assert bob.queued() == 1

    def test_the_same_id_twice_is_one_event(self, alice, bob):
        assert duplicates(alice.publish("orders", number(1, id="a"))) is None
        assert duplicates(alice.publish("orders", number(1, id="a"))) == "1"
        assert bob.queued() == 1

    def test_ids_within_and_across_bulks(self, alice, bob):
        first = alice.publish("orders", number(1, id="a"), number(1, id="a"), number(2))
        assert duplicates(first) == "1"
        again = alice.publish("orders", number(1, id="a"), number(3, id="b"), number(2))
        assert duplicates(again) == "1"
        assert bob.queued() == 4

    def test_ids_are_not_delivered(self, alice, bob):
        alice.publish("orders", number(1, id="a"))
        [row] = alice.get("/topics").get_json()
        assert row["last_event"].keys() == {"topic", "type", "url", "t"}


class TestTargets:
    def test_only_the_target_gets_it(self, alice, bob, client_named):
        carol = client_named("carol")
        carol.follow("orders")
        assert alice.publish("orders", number(1, target="carol"), number(2)).status_code == 204
        assert (bob.queued(), carol.queued()) == (1, 2)

    def test_a_target_must_follow_the_topic(self, alice, bob, client_named, redis_server):
        client_named("carol").follow("bills")
        alice.publish("orders", EVENT)
        before = dump(redis_server)
        response = alice.publish("orders", number(1), number(2, target="carol"))
        assert response.status_code == 400
        detail = response.get_json()["detail"]
        assert (detail["field"], detail["position"]) == ("target", 1)
        assert dump(redis_server) == before

    def test_a_target_whose_pattern_catches_the_new_topic(self, alice, client_named):
        carol = client_named("carol")
        carol.follow("new_*")
        assert alice.publish("new_topic", number(1, target="carol")).status_code == 204
        assert carol.queued() == 1


class TestLimits:
    def test_fan_out(self, limited, alice, bob, client_named, redis_server):
        client_named("carol").follow("orders")
        caller = limited(alice, max_fanout=4)
        assert caller.publish("orders", number(1), number(2)).status_code == 204
        before = dump(redis_server)
        response = caller.publish("orders", *map(number, range(3)))
        assert response.status_code == 413
        assert response.get_json()["detail"] == {
            "field": "body", "rule": "must hold at most 2 events: 2 subscribers",
        }  # fmt: skip
        assert dump(redis_server) == before

    def test_one_event_passes_whatever_the_fan_out(self, limited, alice, bob, client_named):
        client_named("carol").follow("orders")
        caller = limited(alice, max_fanout=1)
        assert caller.publish("orders", EVENT).status_code == 204

    def test_facets(self, limited, alice, bob, redis_server):
        caller = limited(alice, max_lanes=2)
        for facet in ("a", "b", "a"):
            assert caller.publish("orders", number(1, facet=facet)).status_code == 204
        before = dump(redis_server)
        response = caller.publish("orders", number(1, facet="a"), number(2, facet="c"))
        assert response.status_code == 429
        assert int(response.headers["Retry-After"]) > 0
        assert "bob" in response.get_json()["error"]
        assert dump(redis_server) == before
        assert bob.queued() == 3


class TestARefusedPublishClaimsNoTopic:
    def test_for_its_target(self, alice, redis_server):
        before = dump(redis_server)
        assert alice.publish("brand_new", number(1, target="stranger")).status_code == 400
        assert dump(redis_server) == before

    def test_for_its_fan_out(self, limited, alice, bob, client_named, redis_server):
        client_named("carol").follow("*")
        client_named("dave").follow("*")
        before = dump(redis_server)
        caller = limited(alice, max_fanout=3)
        assert caller.publish("brand_new", number(1), number(2)).status_code == 413
        assert dump(redis_server) == before

    def test_but_too_many_facets_are_only_found_by_the_script(
        self, limited, alice, client_named, redis_server
    ):
        carol = client_named("carol")
        carol.follow("*")
        caller = limited(alice, max_lanes=1)
        response = caller.publish("brand_new", number(1, facet="a"), number(2, facet="b"))
        assert response.status_code == 429
        assert carol.queued() == 0
        (topic,) = alice.get("/topics").get_json()
        assert (topic["publisher"], topic["events"]) == ("alice", 0)

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from routemaster.store.subscribers import SECRET_OVERLAP_MS
from tests.busses import token_of
from tests.web.calls import EVENT, SUBSCRIPTION, Caller, dump, stored_text

SPELLINGS = ["subscription", "subscriber"]
LEASE_MS = 60_000


def mine(caller: Caller) -> dict[str, Any]:
    [row] = caller.subscriptions()
    return row


def number(n: int) -> dict[str, object]:
    return {**EVENT, "url": f"https://pub.example/{n}"}


def batches(bus, name: str) -> list[str]:
    """The URLs queued for a subscriber, in order, over all its lanes."""
    link, keys = bus.link, bus.keys
    found = []
    for lane in link.call("ZRANGE", keys.lanes(name), 0, -1):
        for bid in link.call("LRANGE", f"{keys.lane_batches_prefix}{name}|{lane.decode()}", 0, -1):
            found += link.call("LRANGE", keys.batch_prefix + bid.decode(), 5, -1)
    return [json.loads(event)["url"] for event in found]


@pytest.mark.parametrize("one", SPELLINGS)
def test_both_spellings_do_the_same(alice, bob, root, one):
    body = {**SUBSCRIPTION, "topics": ["orders", "bills"]}
    assert bob.post(f"/{one}", body).status_code == 204
    listed = [bob.get(f"/{each}s").get_json() for each in SPELLINGS]
    assert listed[0] == listed[1] and len(listed[0]) == 1
    assert bob.delete(f"/{one}/topics/orders").status_code == 204
    assert bob.delete(f"/{one}/topics/orders").status_code == 404
    assert mine(bob)["topics"] == ["bills"]
    assert bob.delete(f"/{one}").status_code == 204
    assert bob.delete(f"/{one}").status_code == 404
    bob.post(f"/{one}", body)
    assert root.delete(f"/{one}s/bob").status_code == 204
    assert root.delete(f"/{one}s/bob").status_code == 404
    bob.post(f"/{one}", body)
    assert bob.delete(f"/{one}s/bob").status_code == 204
    assert bob.subscriptions() == []


def test_defaults_and_what_a_listing_shows(bob):
    bob.follow("orders", "email_*", "/a|b/")
    assert mine(bob) == {
        "subscriber": "bob",
        "callback": "https://sub.example/",
        "max_events": 100,
        "timeout": 500,
        "concurrency": 1,
        "topics": ["orders"],
        "patterns": ["email_*", "/a|b/"],
        "state": "active",
        "health_points": 100,
        "last_attempted_at": None,
        "events": {"sent": 0, "queued": 0, "oldest": None},
        "batches": {"queued": 0},
    }


def test_a_second_subscription_replaces_all_of_the_first(alice, bob):
    bob.follow("orders", "bills", "email_*", timeout=7, max=3, concurrency=2)
    alice.publish("orders", EVENT)
    bob.follow("bills", "post_*", callback="https://other.example/x")
    shown = mine(bob)
    assert (shown["topics"], shown["patterns"]) == (["bills"], ["post_*"])
    assert (shown["timeout"], shown["max_events"], shown["concurrency"]) == (500, 100, 1)
    assert shown["callback"] == "https://other.example/x"
    alice.publish("orders", EVENT)
    alice.publish("email_sent", EVENT)
    assert bob.queued() == 1  # what was queued before stays
    alice.publish("bills", EVENT)
    alice.publish("post_sent", EVENT)
    assert bob.queued() == 3


def test_null_means_the_default(bob):
    bob.follow("orders", timeout=None, max=None, concurrency=None)
    assert (mine(bob)["timeout"], mine(bob)["max_events"]) == (500, 100)


@pytest.mark.parametrize("pattern", ["email_*", "email_?", "/email_[a-z]/", "*", "/.*/"])
def test_patterns_catch_topics_that_exist_and_that_appear_later(alice, bob, client_named, pattern):
    carol = client_named("carol")
    alice.publish("email_a", EVENT)
    bob.follow(pattern)
    assert mine(bob)["topics"] == ["email_a"]
    alice.publish("email_b", EVENT)  # created by a publish
    assert mine(bob)["topics"] == ["email_a", "email_b"]
    carol.follow("email_c")  # created by somebody's subscription
    assert mine(bob)["topics"] == ["email_a", "email_b", "email_c"]
    alice.publish("email_c", EVENT)
    assert (bob.queued(), carol.queued()) == (2, 1)


def test_patterns_match_whole_names(alice, bob):
    bob.follow("email_*", "/bill/")
    for name in ("my_email_a", "bills", "bill"):
        alice.publish(name, EVENT)
    assert mine(bob)["topics"] == ["bill"]


def test_leaving_a_topic_that_a_pattern_catches(alice, bob):
    bob.follow("email_*")
    alice.publish("email_a", EVENT)
    assert bob.delete("/subscriber/topics/email_a").status_code == 204
    alice.publish("email_a", EVENT)
    alice.publish("email_b", EVENT)
    assert mine(bob)["topics"] == ["email_b"]
    assert bob.queued() == 2
    # Also when the topic goes and comes back.
    alice.delete("/topics/email_a")
    alice.publish("email_a", EVENT)
    assert mine(bob)["topics"] == ["email_b"]
    # Subscribing anew begins anew.
    bob.follow("email_*")
    assert mine(bob)["topics"] == ["email_a", "email_b"]


def test_leaving_what_one_does_not_follow(alice, bob):
    alice.publish("orders", EVENT)
    assert bob.delete("/subscriber/topics/orders").status_code == 404
    bob.follow("bills")
    assert bob.delete("/subscriber/topics/orders").status_code == 404
    assert bob.delete("/subscriber/topics/unheard_of").status_code == 404


def test_a_client_sees_its_own_subscription_and_root_all(alice, bob, root):
    alice.follow("orders")
    bob.follow("orders")
    assert [row["subscriber"] for row in alice.subscriptions()] == ["alice"]
    assert [row["subscriber"] for row in root.subscriptions()] == ["alice", "bob"]


def test_listing_shows_what_is_queued_and_sent(alice, bob, bus):
    bob.follow("orders", max=2)
    for n in range(5):
        alice.publish("orders", number(n))
    shown = mine(bob)
    assert shown["batches"] == {"queued": 3}
    seconds, micros = bus.link.call("TIME")
    now_ms = int(seconds) * 1000 + int(micros) // 1000
    events = shown["events"]
    assert (events["sent"], events["queued"]) == (0, 5)
    assert 0 < events["oldest"] <= now_ms
    taken = bus.main.take("worker", "lease", 60_000, 1)
    [lease] = taken.leases
    assert bus.main.ack(lease.job, lease.fence, lease.bid, health=0)
    events = mine(bob)["events"]
    assert (events["sent"], events["queued"]) == (2, 3)


def test_listing_shows_health(alice, bob, bus):
    bob.follow("orders", max=1)
    alice.publish("orders", EVENT)
    [lease] = bus.main.take("worker", "lease", 60_000, 1).leases
    bus.main.nack(lease.job, lease.fence, 1000, damage=2)
    assert mine(bob)["health_points"] == 98


def test_unsubscribing_leaves_nothing_behind(alice, bob, bus, redis_server):
    alice.publish("orders", EVENT)
    before = dump(redis_server).keys()
    bob.follow("orders", "/.*/", max=2, concurrency=3)
    for n in range(20):
        alice.publish("orders", number(n))
    alice.publish("orders", {**EVENT, "facet": "tenant"})
    assert bob.delete("/subscriber").status_code == 204
    assert dump(redis_server).keys() == before
    assert bus.main.snapshot().index == {}
    # Its name is in its token, in the list of changes, and in counters of what has happened.
    with redis_server.client() as redis:
        redis.delete(bus.keys.counters, bus.keys.changes, bus.keys.tokens)
    assert b"bob" not in stored_text(redis_server)


def test_nothing_old_after_subscribing_again(alice, bob, bus):
    bob.follow("orders", "email_*", max=2)
    for n in range(5):
        alice.publish("orders", number(n))
    bob.delete("/subscriber")
    alice.publish("orders", number(5))
    bob.follow("orders")
    assert batches(bus, "bob") == []
    assert mine(bob)["patterns"] == []
    alice.publish("orders", number(6))
    assert batches(bus, "bob") == ["https://pub.example/6"]
    assert mine(bob)["events"]["queued"] == 1


def test_a_subscription_outlives_its_token(alice, bob, root):
    bob.follow("orders")
    root.delete(f"/api_tokens/{token_of('bob')}")
    assert bob.get("/subscriptions").status_code == 401
    alice.publish("orders", EVENT)
    [row] = root.subscriptions()
    assert row["events"]["queued"] == 1


# Pausing


def take(bus, most: int = 10, now_ms: int | str = ""):
    return bus.main.take("worker", "lease", LEASE_MS, most, now_ms=now_ms).leases


@pytest.mark.parametrize("one", SPELLINGS)
def test_a_paused_subscriber_keeps_its_events_and_gets_none(alice, bob, bus, one):
    bob.follow("orders", max=1)
    alice.publish("orders", number(1))
    assert bob.post(f"/{one}/pause").status_code == 204
    assert mine(bob)["state"] == "paused"
    assert alice.publish("orders", number(2)).status_code == 204
    assert take(bus) == []
    assert bob.queued() == 2
    assert bob.post(f"/{one}/resume").status_code == 204
    assert mine(bob)["state"] == "active"
    [lease] = take(bus)
    assert json.loads(lease.batch.events[0])["url"] == "https://pub.example/1"


@pytest.mark.parametrize("one", SPELLINGS)
def test_root_pauses_and_resumes_by_name(bob, root, one):
    bob.follow("orders")
    assert root.post(f"/{one}s/bob/pause").status_code == 204
    assert mine(bob)["state"] == "paused"
    assert root.post(f"/{one}s/bob/resume").status_code == 204
    assert mine(bob)["state"] == "active"
    assert root.post(f"/{one}s/alice/pause").status_code == 404
    assert root.post(f"/{one}s/no%20name/pause").status_code == 400


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_without_a_subscription_there_is_nothing_to_pause(bob, redis_server, verb):
    before = dump(redis_server)
    assert bob.post(f"/subscriber/{verb}").status_code == 404
    assert dump(redis_server) == before


def test_what_stands_in_line_when_pausing_is_not_taken(alice, bob, bus):
    bob.follow("orders", max=1)
    alice.publish("orders", EVENT)
    assert take(bus, 0) == []
    assert len(bus.main.snapshot().instant) == 1
    bob.post("/subscriber/pause")
    assert take(bus) == []
    bob.post("/subscriber/resume")
    assert len(take(bus)) == 1


def test_twice_is_as_good_as_once(alice, bob, bus):
    bob.follow("orders", max=1)
    alice.publish("orders", EVENT)
    for verb in ("pause", "pause", "resume", "resume"):
        assert bob.post(f"/subscriber/{verb}").status_code == 204
    assert len(take(bus)) == 1


def test_what_is_in_flight_when_pausing_ends_as_usual(alice, bob, bus):
    bob.follow("orders", max=1)
    alice.publish("orders", number(1), number(2))
    [lease] = take(bus)
    bob.post("/subscriber/pause")
    assert bus.main.ack(lease.job, lease.fence, lease.bid)
    assert take(bus) == []
    assert mine(bob)["events"] | {"oldest": None} == {"sent": 1, "queued": 1, "oldest": None}
    bob.post("/subscriber/resume")
    assert len(take(bus)) == 1


@pytest.mark.parametrize(("before", "after"), [("disabled", "active"), ("paused", "paused")])
def test_subscribing_again_brings_back_the_disabled_and_not_the_paused(
    alice, bob, bus, before, after
):
    bob.follow("orders", max=1)
    alice.publish("orders", EVENT)
    bus.subscribers.set_state("bob", before)
    assert take(bus) == []
    bob.follow("orders", max=1)
    assert mine(bob)["state"] == after
    assert len(take(bus)) == (1 if after == "active" else 0)


def test_a_disabled_subscriber_can_be_resumed(alice, bob, bus):
    bob.follow("orders", max=1)
    alice.publish("orders", EVENT)
    bus.subscribers.set_state("bob", "disabled")
    assert bob.post("/subscriber/resume").status_code == 204
    assert len(take(bus)) == 1


# The signing secret


def secret_of(caller: Caller) -> str:
    answer = caller.get("/subscriber/secret")
    assert answer.headers["Cache-Control"] == "no-store"
    secret: str = answer.get_json()["secret"]
    return secret


def whsec(length: int) -> str:
    return "whsec_" + base64.b64encode(bytes(range(length))).decode()


def secrets_at(bus, now_ms: int) -> tuple[str, ...]:
    """Those that a delivery at that time is signed with."""
    [lease] = take(bus, now_ms=now_ms)
    bus.main.nack(lease.job, lease.fence, 0, attempted=False, now_ms=now_ms)
    secrets: tuple[str, ...] = lease.receiver.secrets
    return secrets


@pytest.mark.parametrize("one", SPELLINGS)
def test_a_subscriber_has_a_secret_of_its_own(alice, bob, one):
    alice.follow("orders")
    bob.follow("orders")
    secret = bob.get(f"/{one}/secret").get_json()["secret"]
    assert len(base64.b64decode(secret.removeprefix("whsec_"))) == 32
    bob.follow("bills")
    assert secret_of(bob) == secret != secret_of(alice)


@pytest.mark.parametrize("one", SPELLINGS)
def test_a_replaced_secret_goes_on_signing_for_a_day(alice, bob, bus, one):
    bob.follow("orders", max=1)
    alice.publish("orders", EVENT)
    old = secret_of(bob)
    new = bob.post(f"/{one}/secret").get_json()["secret"]
    assert secret_of(bob) == new != old
    until_ms = int(bus.link.call("HGET", bus.keys.subscriber("bob"), "previous_secret_until"))
    assert secrets_at(bus, until_ms - SECRET_OVERLAP_MS) == (new, old)
    assert secrets_at(bus, until_ms - 1) == (new, old)
    assert secrets_at(bus, until_ms) == (new,)


def test_the_same_secret_again_changes_nothing(bob, redis_server):
    bob.follow("orders")
    bob.post("/subscriber/secret", {"secret": whsec(24)})
    before = dump(redis_server)
    assert bob.post("/subscriber/secret", {"secret": whsec(24)}).status_code == 200
    assert dump(redis_server) == before


@pytest.mark.parametrize("length", [24, 32, 64])
def test_a_secret_of_ones_own(bob, length):
    bob.follow("orders")
    answer = bob.post("/subscriber/secret", {"secret": whsec(length)})
    assert answer.get_json() == {"secret": whsec(length)} == {"secret": secret_of(bob)}


@pytest.mark.parametrize(
    "body",
    [
        {"secret": whsec(23)}, {"secret": whsec(65)}, {"secret": ""}, {"secret": "whsec_"},
        {"secret": whsec(32).removeprefix("whsec_")}, {"secret": whsec(32) + "\n"},
        {"secret": whsec(32).replace("A", "-", 1)}, {"secret": "whsec_é" + whsec(32)},
        {"secret": 7}, {"secret": [whsec(32)]}, {"else": whsec(32)}, [], 7, b"{",
    ],
)  # fmt: skip
def test_a_bad_secret_is_refused_and_not_repeated(bob, redis_server, caplog, body):
    bob.follow("orders")
    before = dump(redis_server)
    answer = bob.post("/subscriber/secret", body)
    assert answer.status_code == 400
    assert dump(redis_server) == before
    given = body.get("secret") if isinstance(body, dict) else None
    if given and isinstance(given, str) and len(given) > len("whsec_"):
        assert given not in answer.get_data(as_text=True) + caplog.text


def test_a_secret_comes_as_json(bob):
    bob.follow("orders")
    options = {"data": "secret=x", "content_type": "application/x-www-form-urlencoded"}
    assert bob.call("POST", "/subscriber/secret", **options).status_code == 415


def test_a_subscription_from_before_there_were_secrets(alice, bob, bus):
    bob.follow("orders", max=1)
    alice.publish("orders", EVENT)
    bus.link.call("HDEL", bus.keys.subscriber("bob"), "secret")
    answer = bob.get("/subscriber/secret")
    assert answer.status_code == 404 and "POST" in answer.get_json()["error"]
    made = bob.post("/subscriber/secret").get_json()["secret"]
    [lease] = take(bus)
    assert lease.receiver.secrets == (made,)


def test_secrets_are_gone_with_the_subscription(bob, redis_server):
    bob.follow("orders")
    old = secret_of(bob)
    new = bob.post("/subscriber/secret").get_json()["secret"]
    assert bob.delete("/subscriber").status_code == 204
    assert bob.post("/subscriber/secret").status_code == 404
    text = stored_text(redis_server)
    assert old.encode() not in text and new.encode() not in text

"""A subscriber looks at its deliveries: which there are, what was tried, and what can be done."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import msgpack
import pytest

from routemaster.bus import Bus
from routemaster.domain.attempt import Attempt
from routemaster.store.jobs import Lease
from routemaster.web import create_app
from tests.web.calls import EVENT, Caller

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def queued(alice: Caller) -> list[str]:
    """Three batches of alice's, none tried; the oldest first."""
    assert alice.follow("orders", max=1, timeout=0).status_code == 204
    assert alice.publish("orders", EVENT, EVENT, EVENT).status_code == 204
    return [op["id"] for op in sorted(listed(alice), key=lambda op: op["first_seq"])]


def listed(caller: Caller, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = page(caller, query)["operations"]
    return found


def page(caller: Caller, query: str = "") -> dict[str, Any]:
    answer = caller.get(f"/subscriber/operations{query}")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.get_json()
    return found


def take(bus: Bus) -> Lease:
    [lease] = takeable(bus)
    return lease


def takeable(bus: Bus) -> list[Lease]:
    # The server's clock: what was asked for just now is due by it.
    return bus.main.take("worker-1", uuid.uuid4().hex, 60_000, 1).leases


def tried(bus: Bus, lease: Lease, outcome: str, **fields: object) -> Attempt:
    now = bus.clock.now_ms()
    known: dict[str, Any] = {"lane": "0", "bid": lease.bid, "number": 1, "events": 1,
             "sent_bytes": 9, "created_ms": now, "started_ms": now, "finished_ms": now,
             "worker": "worker-1", "first_seq": 1}  # fmt: skip
    return Attempt(outcome=outcome, **known | fields)


def succeed(bus: Bus, **fields: object) -> None:
    lease = take(bus)
    attempt = tried(bus, lease, "delivered", status=200, **fields)
    bus.main.ack(lease.job, lease.fence, lease.bid, health=1, attempt=attempt)


def fail(bus: Bus, **fields: object) -> None:
    lease = take(bus)
    attempt = tried(bus, lease, "failed", status=500, error="http_500", **fields)
    bus.main.nack(lease.job, lease.fence, 60_000, damage=2, attempt=attempt)


def test_what_was_not_tried_is_queued(alice, queued):
    assert [op["status"] for op in listed(alice)] == ["QUEUED"] * 3
    one = alice.get(f"/operations/{queued[0]}").get_json()
    assert (one["subscriber"], one["events"], one["attempts"]) == ("alice", 1, [])


def test_each_status(bus, alice, queued):
    succeed(bus)
    lease = take(bus)
    assert [op["status"] for op in by_age(alice)] == ["SUCCESS", "RUNNING", "QUEUED"]
    attempt = tried(bus, lease, "failed", status=500, error="http_500", excerpt=b"a \xff <b>")
    bus.main.nack(lease.job, lease.fence, 60_000, damage=2, attempt=attempt)
    assert [op["status"] for op in by_age(alice)] == ["SUCCESS", "ERROR", "QUEUED"]
    bus.lanes.drop("alice", "0", 2, "operator")
    assert [op["status"] for op in by_age(alice)] == ["SUCCESS", "DROPPED", "DROPPED"]
    [success, dropped, _] = by_age(alice)
    assert [(row["outcome"], row["response"]) for row in dropped["attempts"]] == [
        ("failed", "a � <b>")
    ]
    assert success["attempts"][0]["worker"] == "worker-1"
    assert page(alice)["counts"] == {"SUCCESS": 1, "ERROR": 1, "DROPPED": 2}


def by_age(alice: Caller) -> list[dict[str, Any]]:
    return sorted(listed(alice), key=lambda op: op["first_seq"])


def test_filtered_and_paged_newest_first(bus, alice, queued):
    succeed(bus)
    fail(bus)
    assert [op["id"] for op in listed(alice, "?status=ERROR")] == [queued[1]]
    assert [op["id"] for op in listed(alice, "?status=DROPPED")] == []
    found, cursor = [], ""
    for _ in range(3):
        one = page(alice, f"?limit=1{cursor}")
        found += one["operations"]
        cursor = f"&before={one['next']}"
    assert one["next"] is None
    assert sorted(op["id"] for op in found) == sorted(queued)
    places = [(op["updated"], op["id"]) for op in found]
    assert places == sorted(places, reverse=True)


def test_history_is_bounded_by_number_and_by_age(make_bus, settings, alice, queued):
    bus = make_bus(replace(settings, operations_max=2))
    reader = Caller(create_app(bus).test_client(), alice.token)
    now = bus.clock.now_ms()
    succeed(bus)
    succeed(bus)
    succeed(bus, finished_ms=now - DAY_MS - 1)
    assert [op["id"] for op in listed(reader)] == [queued[1]]
    assert reader.get(f"/operations/{queued[0]}").status_code == 404  # the third one's row
    assert reader.get(f"/operations/{queued[2]}").status_code == 404  # a day old


def test_what_is_no_row_is_not_shown(bus, alice, queued, redis_server):
    succeed(bus)
    with redis_server.client() as redis:
        for junk in (b"", b"\xc1", b"x", msgpack.packb([1]), msgpack.packb(["a"] * 14)):
            redis.rpush(bus.keys.operations("alice"), junk)
    assert len(listed(alice)) == 3


def test_a_waiting_one_is_delivered_now(bus, alice, queued):
    fail(bus)
    assert takeable(bus) == []
    assert alice.post(f"/operations/{queued[0]}/redeliver").status_code == 202
    assert take(bus).bid == queued[0]


def set_aside(bus: Bus) -> bytes:
    """A job whose worker is never heard of again."""
    lease = take(bus)
    assert bus.main.scrub(100, 1, bus.clock.now_ms() + 3_600_000) == (0, 1)
    return lease.job


def test_one_whose_workers_die_says_so_and_is_tried_again_when_asked(bus, alice, queued):
    set_aside(bus)
    [first, *others] = by_age(alice)
    assert (first["status"], first["attempts"]) == ("ERROR", [])
    assert first["reason"] == "its lease expired 1 times, last with worker worker-1"
    assert [(op["status"], op["reason"]) for op in others] == [("QUEUED", None)] * 2
    assert alice.get(f"/operations/{queued[0]}").get_json() == first
    assert takeable(bus) == []
    assert alice.post(f"/operations/{queued[0]}/redeliver").status_code == 202
    assert take(bus).bid == queued[0]
    assert by_age(alice)[0]["reason"] is None


def test_behind_one_that_was_set_aside_redelivering_releases_the_lane(bus, alice, queued):
    set_aside(bus)
    assert alice.post(f"/operations/{queued[2]}/redeliver").status_code == 202
    assert take(bus).bid == queued[0]  # in its order


def test_one_in_flight_is_left_to_its_worker(bus, alice, queued):
    lease = take(bus)
    assert alice.post(f"/operations/{queued[0]}/redeliver").status_code == 202
    assert takeable(bus) == []
    assert bus.main.ack(lease.job, lease.fence, lease.bid)


def test_a_reason_that_is_none_does_no_harm(bus, alice, queued):
    job = set_aside(bus)
    for junk in (b"", b"\xc1", b"x", msgpack.packb([1]), msgpack.packb(["a", b"\xff"])):
        bus.link.call("HSET", bus.keys.quarantine("main"), job, junk)
        assert by_age(alice)[0]["status"] == "ERROR"


def test_what_is_gone_says_what_to_do(bus, alice, queued):
    succeed(bus)
    bus.lanes.drop("alice", "0", 1, "operator")
    for bid in queued[:2]:
        answer = alice.post(f"/operations/{bid}/redeliver")
        assert answer.status_code == 409
        assert "publish them again" in answer.get_json()["error"]


@pytest.mark.parametrize("state", ["pause", "disable"])
def test_one_that_is_held_is_resumed_instead(bus, alice, queued, state):
    if state == "pause":
        alice.post("/subscriber/pause")
    else:
        bus.subscribers.set_state("alice", "disabled")
    answer = alice.post(f"/operations/{queued[0]}/redeliver")
    assert answer.status_code == 409
    assert "resume" in answer.get_json()["error"]
    assert alice.post("/subscriber/resume").status_code == 204
    assert take(bus).bid == queued[0]


def test_others_see_nothing(bus, bob, root, alice, queued):
    succeed(bus)
    for bid in queued[:2]:
        assert bob.get(f"/operations/{bid}").status_code == 404
        assert bob.post(f"/operations/{bid}/redeliver").status_code == 404
        assert root.get(f"/operations/{bid}").status_code == 200
    assert listed(bob) == []
    assert len(listed(root, "?subscriber=alice")) == 3


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("?status=queued", "status"),
        ("?limit=0", "limit"),
        ("?limit=201", "limit"),
        ("?limit=1_0", "limit"),
        ("?limit=²", "limit"),
        ("?limit=99999999999999999999", "limit"),
        ("?before=", "before"),
        ("?before=x", "before"),
        ("?before=1-", "before"),
        ("?before=-5-a", "before"),
    ],
)
def test_a_wrong_question_is_named(alice, query, field):
    answer = alice.get(f"/subscriber/operations{query}")
    assert answer.status_code == 400
    assert field in answer.get_json()["error"]


@pytest.mark.parametrize("bid", ["x", "%00", "a" * 5000, "..%2f", "é", "operations"])
def test_an_unknown_id_is_not_found(alice, bid):
    assert alice.get(f"/operations/{bid}").status_code == 404


def test_history_goes_with_its_subscriber(bus, alice, queued, redis_server):
    succeed(bus)
    assert alice.delete("/subscriber").status_code == 204
    with redis_server.client() as redis:
        assert redis.exists(bus.keys.operations("alice")) == 0
    assert listed(alice) == []

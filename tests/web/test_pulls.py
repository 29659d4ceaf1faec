"""Taking, acknowledging, refusing: what a subscriber without callback can do and find out."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from standardwebhooks import Webhook

from routemaster.web import create_app
from tests.busses import event, give_token
from tests.integration.processes import eventually
from tests.web.calls import Caller

PULL = {"callback": None, "uuid": None, "timeout": 0}


@pytest.fixture
def puller(alice, bob):
    """bob pulls orders, of which alice has published three."""
    bob.follow("orders", **PULL)
    alice.publish("orders", event(1), event(2), event(3))
    return bob


def take(caller, query="", **headers):
    return caller.get(f"/subscriber/batch{query}", headers=headers)


def numbers(answer):
    return [row["t"] for row in answer.get_json()]


def operation(caller, bid):
    return caller.get(f"/operations/{bid}").get_json()


def expire(bus, ms=30_000):
    """As if the lease had run out."""
    now_ms = int(bus.link.call("TIME")[0]) * 1000
    return bus.main.scrub(now_ms=now_ms + ms + 1000)


def test_a_subscription_without_callback_is_listed_without(puller):
    (shown,) = puller.subscriptions()
    assert (shown["callback"], shown["events"]["queued"], shown["state"]) == (None, 3, "active")


def test_a_batch_comes_as_it_would_be_pushed_and_with_its_lease(bus, puller):
    answer = take(puller)
    assert (answer.status_code, answer.mimetype) == (200, "application/json")
    assert numbers(answer) == [1, 2, 3]
    bid = answer.headers["webhook-id"]
    assert answer.headers["Routemaster-Attempt"] == "1"
    assert answer.headers["Routemaster-Lane"] == "0"
    assert answer.headers["Routemaster-Sequence"] == "1-3"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Authorization" not in answer.headers
    headers = {name.lower(): value for name, value in answer.headers}
    secret = puller.get("/subscriber/secret").get_json()["secret"]
    assert len(Webhook(secret).verify(answer.data, headers)) == 3
    (until_ms,) = bus.main.snapshot().pending.values()
    assert int(answer.headers["Routemaster-Lease-Until"]) == until_ms
    running = operation(puller, bid)
    assert (running["status"], running["attempts"]) == ("RUNNING", [])


def test_an_acknowledged_batch_is_gone_and_a_success(puller):
    bid = take(puller).headers["webhook-id"]
    assert puller.delete(f"/subscriber/batch/{bid}").status_code == 204
    (shown,) = puller.subscriptions()
    assert (shown["events"]["sent"], shown["events"]["queued"]) == (3, 0)
    done = operation(puller, bid)
    (attempt,) = done["attempts"]
    assert (done["status"], attempt["outcome"], attempt["attempt"]) == ("SUCCESS", "delivered", 1)
    assert (attempt["status"], attempt["error"], attempt["worker"]) == (None, None, "pull")
    assert take(puller).status_code == 204


def test_bytes_are_those_of_the_body(puller):
    answer = take(puller)
    bid = answer.headers["webhook-id"]
    puller.delete(f"/subscriber/batch/{bid}")
    assert operation(puller, bid)["attempts"][0]["bytes"] == len(answer.data)


def test_acknowledging_again_is_no_mistake(puller):
    bid = take(puller).headers["webhook-id"]
    for _ in range(2):
        assert puller.delete(f"/subscriber/batch/{bid}").status_code == 204
    (shown,) = puller.subscriptions()
    assert shown["events"]["sent"] == 3


def test_a_refused_batch_waits_and_costs_health(bus, puller):
    bid = take(puller).headers["webhook-id"]
    refused = puller.post(f"/subscriber/batch/{bid}/refuse", {"delay": 60_000})
    assert refused.status_code == 204
    (shown,) = puller.subscriptions()
    assert (shown["health_points"], shown["events"]["queued"]) == (98, 3)
    failed = operation(puller, bid)
    (attempt,) = failed["attempts"]
    assert (failed["status"], attempt["outcome"], attempt["error"]) == (
        "ERROR", "failed", "pull_refused",
    )  # fmt: skip
    assert take(puller).status_code == 204
    puller.post(f"/operations/{bid}/redeliver")
    again = take(puller)
    assert (again.headers["webhook-id"], again.headers["Routemaster-Attempt"]) == (bid, "2")
    puller.delete(f"/subscriber/batch/{bid}")
    assert puller.subscriptions()[0]["health_points"] == 99


def test_refusing_without_a_delay_waits_as_after_a_failed_delivery(bus, puller):
    bid = take(puller).headers["webhook-id"]
    assert puller.post(f"/subscriber/batch/{bid}/refuse").status_code == 204
    (due_ms,) = bus.main.snapshot().scheduled.values()
    assert due_ms > operation(puller, bid)["attempts"][0]["finished"]


def test_refusing_with_no_delay_gives_it_at_once(puller):
    bid = take(puller).headers["webhook-id"]
    puller.post(f"/subscriber/batch/{bid}/refuse", {"delay": 0})
    assert take(puller).headers["webhook-id"] == bid


def test_an_expired_lease_is_a_failed_attempt_and_its_batch_comes_again(bus, puller):
    first = take(puller)
    bid, lease = first.headers["webhook-id"], first.headers["Routemaster-Lease"]
    assert expire(bus) == (1, 0)
    failed = operation(puller, bid)
    (attempt,) = failed["attempts"]
    assert (failed["status"], attempt["error"]) == ("ERROR", "lease_expired")
    assert (attempt["bytes"], attempt["outcome"]) == (len(first.data), "failed")
    assert puller.subscriptions()[0]["health_points"] == 98
    again = take(puller)
    assert (again.headers["webhook-id"], again.headers["Routemaster-Attempt"]) == (bid, "2")
    # The one that was slow may not speak for the other.
    for method, path in (("DELETE", ""), ("POST", "/refuse"), ("POST", "/renew")):
        answer = puller.call(
            method, f"/subscriber/batch/{bid}{path}", headers={"Routemaster-Lease": lease}
        )
        assert (answer.status_code, "no lease" in answer.get_json()["error"]) == (409, True)
    assert puller.subscriptions()[0]["events"]["queued"] == 3


def test_a_lost_lease_is_told(bus, puller):
    bid = take(puller).headers["webhook-id"]
    expire(bus)
    assert puller.delete(f"/subscriber/batch/{bid}").status_code == 409
    assert puller.post(f"/subscriber/batch/{bid}/refuse").status_code == 409
    assert puller.post(f"/subscriber/batch/{bid}/renew").status_code == 409


def test_renewing_puts_the_end_off(bus, puller):
    answer = take(puller, "?lease=5")
    bid, until_ms = answer.headers["webhook-id"], int(answer.headers["Routemaster-Lease-Until"])
    renewed = puller.post(f"/subscriber/batch/{bid}/renew?lease=3600")
    assert renewed.status_code == 204
    assert int(renewed.headers["Routemaster-Lease-Until"]) > until_ms + 3_000_000
    assert expire(bus, 5000) == (0, 0)


def test_the_same_key_gives_the_same_batch_while_it_is_leased(puller):
    first = take(puller, **{"Idempotency-Key": "poll 1"})
    again = take(puller, **{"Idempotency-Key": "poll 1"})
    assert again.data == first.data
    for name in ("webhook-id", "Routemaster-Lease", "Routemaster-Attempt"):
        assert again.headers[name] == first.headers[name]
    assert take(puller, **{"Idempotency-Key": "poll 2"}).status_code == 204
    assert take(puller).status_code == 204


def test_as_many_batches_are_leased_as_concurrency_says(alice, bob):
    bob.follow("orders", **PULL, concurrency=2)
    facets = [event(n, facet=f"f{n}") for n in range(3)]
    alice.publish("orders", *facets)
    taken = [take(bob) for _ in range(3)]
    assert [answer.status_code for answer in taken] == [200, 200, 204]
    bob.delete(f"/subscriber/batch/{taken[0].headers['webhook-id']}")
    assert numbers(take(bob)) == [2]


def test_facets_take_turns(bus, alice, bob):
    bob.follow("orders", **PULL, max=1)
    alice.publish("orders", *[event(n, facet="many") for n in range(3)])
    bus.pulls.promote()
    alice.publish("orders", event(9, facet="one"))
    got = []
    while (answer := take(bob)).status_code == 200:
        got += numbers(answer)
        bob.delete(f"/subscriber/batch/{answer.headers['webhook-id']}")
    assert got == [0, 9, 1, 2]


def test_workers_never_take_what_is_pulled(bus, puller):
    for _ in range(2):
        assert not bus.main.take("w", "l", 1000, 10).leases
    assert bus.main.snapshot().instant == []
    assert take(puller).status_code == 200


def test_from_pushing_to_pulling_and_back(bus, alice, bob):
    bob.follow("orders", timeout=0, max=1)
    alice.publish("orders", event(1), event(2), event(3))
    (pushed,) = bus.main.take("w", "l", 60_000, 10).leases
    bob.follow("orders", **PULL, max=1)
    assert take(bob).status_code == 204  # a worker has it, and its one slot
    bus.main.ack(pushed.job, pushed.fence, pushed.bid)
    pulled = take(bob)
    assert numbers(pulled) == [2]
    bob.follow("orders", timeout=0, max=1)
    assert take(bob).status_code == 409
    assert not bus.main.take("w", "l2", 60_000, 10).leases
    bob.delete(f"/subscriber/batch/{pulled.headers['webhook-id']}")
    (pushed,) = bus.main.take("w", "l3", 60_000, 10).leases
    assert pushed.batch and b'"t":3' in pushed.batch.events[0]


def test_what_stood_in_line_for_a_worker_is_pulled(bus, alice, bob):
    bob.follow("orders", timeout=0)
    alice.publish("orders", event(1))
    bus.main.take("w", "l", 60_000, 0)
    assert len(bus.main.snapshot().instant) == 1
    bob.follow("orders", **PULL)
    bus.main.take("w", "l", 60_000, 10)
    assert numbers(take(bob)) == [1]


def test_a_paused_subscriber_gets_nothing_until_it_resumes(puller):
    puller.post("/subscriber/pause")
    assert take(puller).status_code == 204
    puller.post("/subscriber/resume")
    assert take(puller).status_code == 200


def test_unsubscribing_ends_the_lease(puller):
    bid = take(puller).headers["webhook-id"]
    puller.delete("/subscriber")
    assert puller.delete(f"/subscriber/batch/{bid}").status_code == 409
    assert take(puller).status_code == 404


def test_another_clients_batch_is_answered_like_none(alice, puller):
    bid = take(puller).headers["webhook-id"]
    assert alice.delete(f"/subscriber/batch/{bid}").status_code == 409
    assert alice.delete("/subscriber/batch/unknown").status_code == 409


def test_only_the_first_batch_of_a_lane_can_be_acknowledged(alice, bob):
    bob.follow("orders", **PULL, max=1)
    alice.publish("orders", event(1), event(2))
    leased = take(bob).headers["webhook-id"]
    listed = bob.get("/subscriber/operations").get_json()["operations"]
    (behind,) = [row["id"] for row in listed if row["id"] != leased]
    assert bob.delete(f"/subscriber/batch/{behind}").status_code == 409
    assert bob.queued() == 2


def test_a_batch_that_vanished_is_passed_over(bus, alice, bob):
    bob.follow("orders", **PULL, max=1)
    alice.publish("orders", event(1), event(2))
    first, _ = bus.link.call("LRANGE", bus.keys.lane_batches_prefix + "bob|0", 0, -1)
    bus.link.call("DEL", bus.keys.batch_prefix + first.decode())
    assert numbers(take(bob)) == [2]


def test_looking_with_head_takes_nothing(puller):
    assert puller.call("HEAD", "/subscriber/batch").status_code == 204
    assert take(puller).status_code == 200


@pytest.mark.parametrize(
    ("query", "field"),
    [
        *((f"?wait={value}", "wait") for value in ("-1", "31", "x", "", "1.5", "9" * 30, "%C2%B2")),
        *((f"?lease={value}", "lease") for value in ("0", "3601", "x", "", "-5", "9" * 30)),
    ],
)
def test_a_query_that_makes_no_sense(puller, query, field):
    answer = take(puller, query)
    assert (answer.status_code, answer.get_json()["detail"]["field"]) == (400, field)
    assert take(puller).status_code == 200


@pytest.mark.parametrize(
    "body", [{"delay": -1}, {"delay": "1"}, {"delay": 3_600_001}, {"x": 1}, []]
)
def test_a_delay_that_makes_no_sense(puller, body):
    bid = take(puller).headers["webhook-id"]
    answer = puller.post(f"/subscriber/batch/{bid}/refuse", body)
    assert answer.status_code == 400
    assert operation(puller, bid)["status"] == "RUNNING"


@pytest.mark.parametrize("name", ["Idempotency-Key", "Routemaster-Lease"])
@pytest.mark.parametrize("value", ["x" * 257, "é"])
def test_a_header_that_makes_no_sense(puller, name, value):
    call = (lambda: take(puller, **{name: value})) if name == "Idempotency-Key" else (
        lambda: puller.delete("/subscriber/batch/x", headers={name: value})
    )  # fmt: skip
    answer = call()
    assert (answer.status_code, answer.get_json()["detail"]["field"]) == (400, name)


def test_who_waits_is_called_when_something_comes_due(bus, app, alice, bob):
    bob.follow("orders", **PULL)
    found = []
    waiting = threading.Thread(target=lambda: found.append(take(bob, "?wait=20")))
    waiting.start()
    channel = bus.keys.waiting("bob")
    eventually(lambda: bus.link.call("PUBSUB", "NUMSUB", channel)[1])
    alice.publish("orders", event(7))
    bus.pulls.promote()
    waiting.join(10)
    assert numbers(found[0]) == [7]
    app.extensions["routemaster.room"].close()


def test_nobody_waits_longer_than_asked(app, bob):
    bob.follow("orders", **PULL)
    assert take(bob, "?wait=1").status_code == 204
    app.extensions["routemaster.room"].close()


def test_where_too_many_wait_the_next_is_sent_away(make_bus, settings, client_named, bus):
    crowded = create_app(make_bus(replace(settings, max_waiting=0)))
    caller = Caller(crowded.test_client(), give_token(bus, "carol"))
    caller.follow("orders", **PULL)
    answer = take(caller, "?wait=20")
    assert (answer.status_code, answer.headers["Retry-After"]) == (204, "1")


def test_what_was_dropped_is_told_with_the_next_batch(bus, alice, puller):
    bus.lanes.drop("bob", "0", 1, "memory")
    alice.publish("orders", event(4))
    answer = take(puller)
    assert (numbers(answer), answer.headers["Routemaster-Dropped"]) == ([4], "1-3")
    assert puller.delete(f"/subscriber/batch/{answer.headers['webhook-id']}").status_code == 204
    alice.publish("orders", event(5))
    assert "Routemaster-Dropped" not in take(puller).headers

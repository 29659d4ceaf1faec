"""The Python client against the real bus."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice

import pytest

from routemaster.client import (
    BackgroundPublisher,
    BusError,
    Client,
    Conflict,
    Event,
    InvalidRequest,
    Live,
    NotAllowed,
    NotFound,
    TooManyAtOnce,
    Unauthorized,
    Unavailable,
)
from tests.clients.gateway import HANG_UP, LOSE, Say
from tests.e2e.running import unique
from tests.integration.processes import WebProcess, eventually
from tests.servers import free_port


def url(number: int) -> str:
    return f"https://pub.example/{number}"


def published(client: Client, topic: str) -> int:
    [row] = [row for row in client.topics() if row["name"] == topic]
    return int(row["events"])


def test_what_is_published_is_delivered(client, receiver, topic):
    client.subscribe([topic], receiver.url, "uuid", timeout=200, max=10)
    client.created(topic, url(1), t=1, data={"a": 1})
    client.updated(topic, url(2), t=2, facet="berlin")
    client.deleted(topic, url(3), t=3, id=unique("id"))
    client.noop(topic, url(4), t=4)
    receiver.wait_for_events(4)
    events = [event for delivery in receiver.deliveries for event in delivery.events]
    assert sorted(events, key=lambda e: e["t"]) == [
        {"topic": topic, "type": "create", "url": url(1), "t": 1, "data": {"a": 1}},
        {"topic": topic, "type": "update", "url": url(2), "t": 2, "facet": "berlin"},
        {"topic": topic, "type": "delete", "url": url(3), "t": 3},
        {"topic": topic, "type": "noop", "url": url(4), "t": 4},
    ]


@pytest.mark.parametrize(
    "loss", [LOSE, HANG_UP, Say(503, {"Retry-After": "0"}), Say(429), Say(502)]
)
def test_a_publish_is_made_again_until_it_is_answered_and_is_one_event(
    behind, client, gateway, topic, loss
):
    gateway.in_turn(loss, loss)
    behind.created(topic, url(1))
    behind.created(topic, url(2), id="mine")
    assert published(client, topic) == 2
    assert len({seen.headers.get("Idempotency-Key") for seen in gateway.seen[:3]}) == 1


def test_a_bulk_is_made_again_and_is_stored_once(behind, client, gateway, topic):
    gateway.in_turn(LOSE)
    assert behind.publish_many(topic, (Event("update", url(n)) for n in range(5))) == 5
    assert published(client, topic) == 5


def test_a_key_is_remembered_as_long_as_it_may_be_used_and_an_id_for_a_day(behind, gateway, topic):
    behind.created(topic, url(1))
    behind.created(topic, url(1), id="mine")
    behind.publish_many(topic, [Event("update", url(2))])
    behind.publish_many(topic, [Event("update", url(2), id="mine")])
    with BackgroundPublisher(behind) as publisher:
        publisher.updated(topic, url(3))
    told = [seen.headers.get("Routemaster-Remember") for seen in gateway.seen]
    assert told == ["600", None, "600", None, "21600"]


def test_what_is_removed_by_a_call_whose_answer_was_lost_is_no_error(behind, gateway, topic):
    behind.created(topic, url(1))
    gateway.in_turn(LOSE)
    behind.delete_topic(topic)
    with pytest.raises(NotFound):
        behind.delete_topic(topic)


def test_a_token_and_a_secret_are_made_once_however_often_the_answer_is_lost(
    gateway, root, receiver, topic
):
    behind = Client(gateway.url, root.http._token)
    name = unique("lost")
    gateway.in_turn(LOSE)
    token = behind.add_token(name)
    assert len([row for row in root.tokens() if row["name"] == name]) == 1
    client = Client(gateway.url, token)
    client.subscribe([topic], receiver.url, "uuid")
    gateway.in_turn(LOSE)
    assert client.rotate_secret() == client.secret()


def test_retry_after_is_honoured(behind, gateway, topic):
    gateway.in_turn(Say(503, {"Retry-After": "1"}))
    began_s = time.monotonic()
    behind.created(topic, url(1))
    assert time.monotonic() - began_s >= 1


def test_a_deadline_ends_the_attempts(token, gateway):
    client = Client(gateway.url, token, timeout=1, deadline=0.5)
    gateway.script = lambda seen: Say(503, {}, b'{"error": "store unavailable"}')
    with pytest.raises(Unavailable, match="store unavailable") as caught:
        client.pulse()
    assert caught.value.status == 503
    assert caught.value.attempts == len(gateway.seen) > 1
    gateway.in_turn(Say(503, {"Retry-After": "3600"}))
    with pytest.raises(Unavailable) as caught:
        client.pulse()
    assert caught.value.attempts == 1


def test_a_bus_that_is_not_there_is_said_so(token):
    client = Client(f"http://127.0.0.1:{free_port()}", token, deadline=0.3)
    with pytest.raises(Unavailable, match="does not answer") as caught:
        client.pulse()
    assert caught.value.status is None


def test_an_answer_that_never_ends_is_given_up(token, gateway):
    client = Client(gateway.url, token, timeout=0.2, deadline=0.3)
    gateway.gate.clear()
    with pytest.raises(Unavailable, match="does not answer"):
        client.pulse()


def test_a_redirect_is_not_followed_with_the_token(behind, gateway):
    gateway.in_turn(Say(308, {"Location": "https://bus.example/pulse"}))
    with pytest.raises(BusError, match="the bus is at https://bus.example/pulse"):
        behind.pulse()
    assert len(gateway.seen) == 1


def test_each_refusal_has_a_class(bus, client, root, topic, receiver):
    with pytest.raises(Unauthorized):
        Client(bus.web.url, "nobody").pulse()
    client.created(topic, url(1))
    other = Client(bus.web.url, root.add_token(unique("other")))
    with pytest.raises(NotAllowed, match="belongs to") as caught:
        other.created(topic, url(1))
    assert caught.value.status == 403
    with pytest.raises(NotFound):
        client.unsubscribe_all()
    with pytest.raises(InvalidRequest) as bad:
        client.subscribe([topic], receiver.url, "a b")
    assert bad.value.field == "uuid" and bad.value.status == 400
    with pytest.raises(ValueError, match="topics"):
        client.subscribe(topic, receiver.url, "uuid")
    with pytest.raises(NotAllowed):
        client.tokens()


def test_subscriptions_are_made_shown_paused_and_removed(client, root, receiver, topic):
    client.subscribe([topic, "other_*"], receiver.url, "uuid", timeout=1, max=2, concurrency=3)
    [row] = client.subscribers()
    assert (row["timeout"], row["max_events"], row["concurrency"]) == (1, 2, 3)
    assert row in root.subscribers()
    client.pause()
    assert client.subscribers()[0]["state"] == "paused"
    root.resume(row["subscriber"])
    assert client.subscribers()[0]["state"] == "active"
    secret = client.secret()
    assert client.rotate_secret() != secret
    client.unsubscribe(topic)
    assert topic not in client.subscribers()[0]["topics"]
    client.unsubscribe_all()
    assert client.subscribers() == []


def test_root_removes_a_subscriber_and_a_token(bus, root, receiver, topic):
    name = unique("leaver")
    client = Client(bus.web.url, root.add_token(name))
    client.subscribe([topic], receiver.url, "uuid")
    root.delete_subscriber(name)
    assert client.subscribers() == []
    [masked] = [row["token"] for row in root.tokens() if row["name"] == name]
    root.delete_token(masked)
    with pytest.raises(Unauthorized):
        client.pulse()


def test_operations_tell_what_became_of_deliveries(client, root, receiver, topic):
    client.subscribe([topic], receiver.url, "uuid", timeout=0)
    client.created(topic, url(1))
    bid = receiver.wait_for_deliveries(1)[0].bid
    eventually(lambda: client.operation(bid)["status"] == "SUCCESS")
    page = client.operations(status="SUCCESS", limit=1)
    assert [row["id"] for row in page["operations"]] == [bid]
    name = client.subscribers()[0]["subscriber"]
    assert root.operations(subscriber=name)["operations"][0]["id"] == bid
    with pytest.raises(Conflict, match="publish them again"):
        client.redeliver(bid)


def test_batches_are_pulled_refused_kept_and_done(client, topic):
    client.subscribe([topic], max=1, timeout=0)
    assert client.pull() is None
    client.publish_many(topic, [Event("update", url(n), t=n) for n in (1, 2)])
    first = client.pull(wait=20)
    assert first and [event["t"] for event in first.events] == [1]
    client.renew(first, lease=60)
    client.refuse(first, delay=0)
    again = client.pull(wait=20)
    assert again and (again.id, again.events) == (first.id, first.events)
    with pytest.raises(Conflict):
        client.done(first)
    client.done(again)
    second = client.pull(wait=20)
    assert second and second.events[0]["t"] == 2
    client.done(second)


def test_a_pull_whose_answer_was_lost_gives_the_same_batch(behind, gateway, topic):
    behind.subscribe([topic], timeout=0)
    behind.created(topic, url(1))
    gateway.in_turn(LOSE)
    found = behind.pull(wait=10)
    assert found and found.events[0]["url"] == url(1)
    behind.done(found)


def test_a_topics_events_are_heard_as_they_are_published(client, topic):
    client.created(topic, url(0))
    heard: list[Live] = []
    listener = threading.Thread(target=lambda: heard.extend(islice(client.listen(topic), 3)))
    listener.start()
    # It hears what comes after it has begun, and nobody knows when that is.
    number = itertools.count(1)
    eventually(lambda: client.created(topic, url(next(number))) or not listener.is_alive())
    numbers = [live.number for live in heard]
    assert numbers == list(range(numbers[0], numbers[0] + 3))
    assert [live.event and live.event["url"] for live in heard] == [url(n - 1) for n in numbers]


def test_many_events_go_in_order_in_bulks_from_an_iterator(behind, gateway, receiver, topic):
    behind.subscribe([topic], receiver.url, "uuid", timeout=0, max=5000)
    gateway.seen.clear()
    told: list[int] = []
    drawn: list[int] = []

    def endless() -> Iterator[Event]:
        for n in itertools.count():
            # What was drawn is never more than a request ahead of what was sent.
            drawn.append(n - (told[-1] if told else 0))
            yield Event("update", url(n), t=n)

    count = behind.publish_many(topic, itertools.islice(endless(), 2500), progress=told.append)
    assert count == 2500
    assert told == [1000, 2000, 2500]
    assert max(drawn) <= 1000
    assert len(gateway.seen) == 3
    assert receiver.wait_for_events(2500) == list(range(2500))


def test_a_bus_that_takes_less_at_once_is_given_less(bus, root, topic):
    bounded = {"ROUTEMASTER_MAX_BULK": "100", "ROUTEMASTER_MAX_BODY": "4096"}
    with other_web(bus, **bounded) as web:
        client = Client(web.url, root.add_token(unique("many")))
        told: list[int] = []
        events = (Event("update", url(n), data={"n": n}) for n in range(450))
        assert client.publish_many(topic, events, progress=told.append) == 450
        assert published(client, topic) == 450
        assert client._bulk.most_events <= 100 and client._bulk.most_bytes == 4096
        with pytest.raises(TooManyAtOnce) as caught:
            client.subscribe(["a" * 5000], "https://sub.example", "uuid")
        assert (caught.value.most_bytes, caught.value.most_events) == (4096, None)


def test_many_subscribers_make_bulks_smaller(bus, root, receiver, topic):
    with other_web(bus, ROUTEMASTER_MAX_FANOUT="10") as web:
        publisher = Client(web.url, root.add_token(unique("wide")))
        for _ in range(2):
            subscriber = Client(web.url, root.add_token(unique("narrow")))
            subscriber.subscribe([topic], receiver.url, "uuid")
        assert publisher.publish_many(topic, (Event("noop", url(n)) for n in range(23))) == 23
        assert published(publisher, topic) == 23


def test_a_bad_event_among_many_is_named_by_its_place_in_all(client, topic):
    def some() -> Iterator[Event]:
        yield from (Event("update", url(n)) for n in range(1200))
        yield Event("update", "http://pub.example/")

    with pytest.raises(InvalidRequest, match="must start with https") as caught:
        client.publish_many(topic, some())
    assert caught.value.position == 1200
    assert published(client, topic) == 1000


def test_a_url_that_is_none_is_refused_at_once():
    for bad in ("bus.example.com", "ftp://bus", "https://user@bus", "https://bus/?a=1"):
        with pytest.raises(ValueError, match="the bus's url"):
            Client(bad, "token")


@contextmanager
def other_web(bus, **env):
    """Another web process of the same bus, with other limits."""
    web = WebProcess(bus.redis.url, ROUTEMASTER_WEB_PROCESSES="1", **env).start()
    try:
        yield web
    finally:
        web.close()

"""Receiving with `routemaster.receiver`: real deliveries, and every bad one we can think of."""

from __future__ import annotations

import base64
import json
import threading
from typing import Any

import flask
import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from routemaster.domain.signature import new_secret, signatures
from routemaster.receiver import (
    Batch,
    Busy,
    DirtyMap,
    Gap,
    Gone,
    Memory,
    Receiver,
    SqliteMemory,
    blueprint,
    django_view,
    ignore_stale,
    latest_by_url,
    mark_dirty,
    siphon,
)
from tests.clients.serving import serving
from tests.integration.processes import eventually

NOW_S = 1_700_000_000
SECRET, OTHER = new_secret(), new_secret()
UUID = "a-uuid"


def url(number: int) -> str:
    return f"https://pub.example/{number}"


def event(number: int, t: int = 1, topic: str = "orders") -> dict[str, Any]:
    return {"topic": topic, "type": "update", "url": url(number), "t": t}


def body_of(*events: dict[str, Any]) -> bytes:
    return json.dumps(events).encode()


def headers_for(
    body: bytes, id: str = "batch-1", sequence: str = "1-1", secret: str = SECRET, **more: str
) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "Authorization": "Basic " + base64.b64encode(f"{UUID}:x".encode()).decode(),
        "webhook-id": id,
        "webhook-timestamp": str(NOW_S),
        "webhook-signature": signatures([secret], id, NOW_S, body),
        "Routemaster-Attempt": "1",
        "Routemaster-Lane": "0",
        "Routemaster-Sequence": sequence,
    } | {name.replace("_", "-"): value for name, value in more.items()}


def make(on_event: Any = None, **options: Any) -> Receiver:
    if on_event is None and "on_batch" not in options:
        on_event = lambda event: None  # noqa: E731
    given: dict[str, Any] = {"uuid": UUID, "secrets": SECRET, "now_s": lambda: float(NOW_S)}
    given |= options
    return Receiver(on_event=on_event, **given)


class TestWhoMay:
    BODY = body_of(event(1))

    def status(self, receiver: Receiver, **changed: str | None) -> int:
        headers = {name.lower(): value for name, value in headers_for(self.BODY).items()}
        for name, value in changed.items():
            headers.pop(name.replace("_", "-"))
            if value is not None:
                headers[name.replace("_", "-")] = value
        return receiver.receive(headers, self.BODY).status

    def test_the_bus(self):
        assert self.status(make()) == 204

    @pytest.mark.parametrize("missing", ["authorization", "webhook_signature", "webhook_id"])
    def test_nobody_without_credentials(self, missing):
        assert self.status(make(), **{missing: None}) == 401

    @pytest.mark.parametrize(
        "changed",
        [
            {"authorization": "Basic " + base64.b64encode(b"another:x").decode()},
            {"authorization": "Basic " + base64.b64encode(b"a-uui\xff:x").decode()},
            {"authorization": "Basic é"},
            {"webhook_signature": "v1,AAAA"},
            {"webhook_signature": "v2," + "A" * 44},
            {"webhook_signature": "é"},
            {"webhook_id": "batch-2"},
            {"webhook_timestamp": str(NOW_S - 1)},
            {"webhook_timestamp": "soon"},
            {"webhook_timestamp": "9" * 400},
        ],
    )
    def test_nobody_with_wrong_ones(self, changed):
        assert self.status(make(), **changed) == 403

    def test_nobody_with_another_body(self):
        receiver = make()
        assert receiver.receive(headers_for(self.BODY), body_of(event(2))).status == 403

    @pytest.mark.parametrize(
        ("late_s", "status"), [(299, 204), (-299, 204), (301, 403), (-301, 403)]
    )
    def test_a_clock_may_be_wrong_by_five_minutes(self, late_s, status):
        assert self.status(make(now_s=lambda: NOW_S + late_s)) == status

    def test_two_secrets_and_two_uuids_during_a_replacement(self):
        receiver = make(secrets=[OTHER, SECRET], uuid=["new", UUID])
        assert self.status(receiver) == 204
        both = signatures([OTHER, SECRET], "batch-1", NOW_S, self.BODY)
        assert self.status(make(), webhook_signature=both) == 204

    def test_either_alone_will_do(self):
        assert self.status(make(secrets=()), webhook_signature=None) == 204
        assert self.status(make(uuid=()), authorization=None) == 204

    @pytest.mark.parametrize("options", [{}, {"uuid": ""}, {"secrets": [""]}])
    def test_a_receiver_that_would_let_anybody_in_cannot_be_made(self, options):
        with pytest.raises(ValueError, match="uuid"):
            Receiver(on_event=print, **options)


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"null", b"[1]", b"[{}]", b"\xff", b"[" * 100_000,
     b'[{"topic": "a", "type": "b", "url": 1, "t": 1}]'],
)  # fmt: skip
def test_what_is_no_batch_is_answered_400(body):
    assert make().receive(headers_for(body), body).status == 400


class TestWsgi:
    def call(self, receiver: Receiver, body: bytes, **environ: Any) -> tuple[int, dict[str, str]]:
        from io import BytesIO

        found: list[Any] = []
        named = {f"HTTP_{n.upper().replace('-', '_')}": v for n, v in headers_for(body).items()}
        given = {"REQUEST_METHOD": "POST", "CONTENT_LENGTH": str(len(body))} | named
        given |= {"wsgi.input": BytesIO(body)} | environ
        receiver(given, lambda *line: found.append(line))  # type: ignore[arg-type]
        return int(found[0][0].split()[0]), dict(found[0][1])

    def test_only_posts(self):
        assert self.call(make(), b"", REQUEST_METHOD="GET") == (
            405, {"Allow": "POST", "Content-Type": "text/plain; charset=utf-8",
                  "Content-Length": "13"})  # fmt: skip

    def test_bodies_are_bounded_and_whole(self):
        body = body_of(event(1))
        assert self.call(make(), body)[0] == 204
        assert self.call(make(max_body_bytes=10), body)[0] == 413
        assert self.call(make(), body, CONTENT_LENGTH="")[0] == 411
        assert self.call(make(), body, CONTENT_LENGTH=str(len(body) + 1))[0] == 400


class TestAnswers:
    @pytest.mark.parametrize(
        ("raised", "status", "headers"),
        [
            (KeyError("a bug"), 500, {}),
            (Busy(7), 503, {"Retry-After": "7"}),
            (Gone(), 410, {}),
        ],
    )
    def test_an_exception_is_no_success_and_the_batch_may_come_again(self, raised, status, headers):
        failing = [raised]
        handled = []

        def on_event(event: Any) -> None:
            if failing:
                raise failing.pop()
            handled.append(event["url"])

        receiver, body = make(on_event), body_of(event(1), event(2))
        answer = receiver.receive(headers_for(body), body)
        assert (answer.status, answer.headers) == (status, headers)
        assert "a bug" not in answer.text
        assert receiver.receive(headers_for(body), body).status == 204
        assert handled == [url(1), url(2)]

    def test_a_batch_that_was_processed_is_not_processed_again(self):
        handled = []
        receiver, body = make(lambda event: handled.append(event)), body_of(event(1))
        assert [receiver.receive(headers_for(body), body).status for _ in range(3)] == [204] * 3
        assert len(handled) == 1

    def test_a_batch_that_comes_again_while_it_is_processed_has_to_wait(self):
        entered, go = threading.Event(), threading.Event()
        handled = []

        def on_event(event: Any) -> None:
            entered.set()
            go.wait(20)
            handled.append(event)

        receiver, body = make(on_event), body_of(event(1))
        first = threading.Thread(target=receiver.receive, args=(headers_for(body), body))
        first.start()
        entered.wait(20)
        answer = receiver.receive(headers_for(body), body)
        assert (answer.status, answer.headers) == (503, {"Retry-After": "1"})
        go.set()
        first.join(20)
        assert receiver.receive(headers_for(body), body).status == 204
        assert len(handled) == 1


class TestGaps:
    def noticed(self, *batches: tuple[str, str]) -> list[Gap]:
        found: list[Gap] = []
        receiver, body = make(on_gap=found.append), body_of(event(1))
        for number, (sequence, dropped) in enumerate(batches):
            more = {"Routemaster_Dropped": dropped} if dropped else {}
            headers = headers_for(body, f"batch-{number}", sequence, **more)
            assert receiver.receive(headers, body).status == 204
        return found

    def test_none_in_an_unbroken_row(self):
        assert self.noticed(("5-9", ""), ("10-10", ""), ("11-20", "")) == []

    def test_one_that_the_bus_does_not_explain(self):
        assert self.noticed(("1-9", ""), ("12-12", "")) == [Gap("0", 10, 11, False)]

    def test_one_that_it_does(self):
        assert self.noticed(("1-9", ""), ("12-12", "10-11")) == [Gap("0", 10, 11, True)]

    def test_both_at_once(self):
        assert self.noticed(("1-9", ""), ("20-20", "12-13, 15-16")) == [
            Gap("0", 12, 13, True),
            Gap("0", 15, 16, True),
            Gap("0", 10, 11, False),
            Gap("0", 14, 14, False),
            Gap("0", 17, 19, False),
        ]

    def test_a_lane_that_begins_again(self):
        assert self.noticed(("1-9", ""), ("1-3", ""), ("4-4", "")) == []


@pytest.mark.parametrize("kind", ["process", "file"])
def test_a_store_remembers_a_bounded_number(kind, tmp_path):
    store = Memory(3) if kind == "process" else SqliteMemory(tmp_path / "seen.db", 3)
    for n in range(10):
        store.remember(Batch(f"b{n}", (), 1, "lane", n, n))
    assert [n for n in range(10) if store.has(f"b{n}")] == [7, 8, 9]
    assert (store.last_of("lane"), store.last_of("other")) == (9, None)


def test_a_file_is_shared_and_survives(tmp_path):
    body = body_of(event(1))
    handled: list[Any] = []
    for _ in range(2):
        receiver = make(handled.append, store=SqliteMemory(tmp_path / "seen.db"))
        assert receiver.receive(headers_for(body), body).status == 204
    assert len(handled) == 1


def batch(*events: dict[str, Any]) -> Batch:
    return Batch("id", events)


class TestStack:
    def test_the_latest_of_each_url(self):
        seen: list[Batch] = []
        latest_by_url(seen.append)(batch(event(1, 5), event(2, 1), event(1, 4), event(2, 1)))
        assert [(e["url"], e["t"]) for e in seen[0].events] == [(url(1), 5), (url(2), 1)]

    def test_stale_events_are_left_out(self):
        seen: list[Batch] = []
        handle = ignore_stale(seen.append)
        handle(batch(event(1, 5)))
        handle(batch(event(1, 4), event(1, 5), event(2, 1)))
        handle(batch(event(1, 3)))
        assert [[e["t"] for e in b.events] for b in seen] == [[5], [5, 1]]

    def test_what_failed_is_not_stale_when_it_comes_again(self):
        failing, seen = [ValueError()], []

        def end(batch: Batch) -> None:
            if failing:
                raise failing.pop()
            seen.append(batch)

        handle = ignore_stale(end)
        with pytest.raises(ValueError):
            handle(batch(event(1, 5), event(1, 6)))
        handle(batch(event(1, 5), event(1, 6)))
        assert len(seen[0].events) == 2

    def test_only_so_many_urls_are_known(self):
        seen: list[Batch] = []
        handle = ignore_stale(seen.append, most_urls=1)
        for each in (event(1, 5), event(2, 5), event(1, 1), event(1, 0)):
            handle(batch(each))
        assert [b.events[0]["t"] for b in seen] == [5, 5, 1]

    def test_a_siphon_takes_its_topics_aside(self):
        seen: list[Batch] = []
        prices: list[Any] = []
        handle = siphon({"prices": prices.append}, seen.append)
        handle(batch(event(1, topic="prices"), event(2), event(3, topic="prices")))
        handle(batch(event(4, topic="prices")))
        assert [e["url"] for e in prices] == [url(1), url(3), url(4)]
        assert [[e["url"] for e in b.events] for b in seen] == [[url(2)]]

    def test_a_dirty_map_is_swept_until_it_is_clean(self):
        dirty = DirtyMap()
        mark_dirty(dirty)(batch(event(1), event(2), event(1), event(3)))
        assert dirty.all() == [url(1), url(2), url(3)]
        assert not dirty.mark(url(1))
        assert dirty.sweep(lambda u: u != url(2)) == 2
        assert dirty.all() == [url(2)]

        def fail(u: str) -> bool:
            raise ValueError

        with pytest.raises(ValueError):
            dirty.sweep(fail)
        assert dirty.all() == [url(2)]

    def test_what_changes_while_it_is_swept_is_dirty_again(self):
        dirty = DirtyMap()
        dirty.mark(url(1))
        dirty.sweep(lambda u: dirty.mark(u))
        assert dirty.all() == [url(1)]

    def test_a_full_dirty_map_lets_the_bus_wait(self):
        receiver = make(on_batch=mark_dirty(DirtyMap(most=1)))
        body = body_of(event(1), event(2))
        answer = receiver.receive(headers_for(body), body)
        assert (answer.status, answer.headers) == (503, {"Retry-After": "5"})


def as_wsgi(receiver: Receiver) -> Any:
    return receiver


def in_flask(receiver: Receiver) -> Any:
    app = flask.Flask("subscriber")
    app.register_blueprint(blueprint(receiver))
    return app


def in_django(receiver: Receiver) -> Any:
    import django
    from django.conf import settings
    from django.core.handlers.wsgi import WSGIHandler
    from django.urls import path

    class Urls:
        urlpatterns = (path("events", django_view(receiver)),)

    if not settings.configured:
        middleware = ["django.middleware.csrf.CsrfViewMiddleware"]
        settings.configure(MIDDLEWARE=middleware, ALLOWED_HOSTS=["*"], LOGGING_CONFIG=None)
        django.setup()
    settings.ROOT_URLCONF = Urls
    return WSGIHandler()


# Seen twice: the second attempt at the Flask one did not come within 20 s, on a busy machine. Not
# understood yet; with the long tests until it is.
@pytest.mark.parametrize(
    "kind", [as_wsgi, pytest.param(in_flask, marks=pytest.mark.faults), in_django]
)
def test_real_deliveries_come_in_and_what_fails_comes_again(client, topic, kind):
    batches: list[Batch] = []
    failures = [ValueError("once")]

    def on_batch(batch: Batch) -> None:
        batches.append(batch)
        if failures:
            raise failures.pop()

    client.subscribe([topic], "http://127.0.0.1:1/", UUID)
    receiver = Receiver(uuid=UUID, secrets=client.secret(), on_batch=on_batch)
    with serving(kind(receiver)) as callback:
        client.subscribe([topic], callback, UUID, timeout=0)
        client.created(topic, url(1), facet="ü/b")
        eventually(lambda: len(batches) == 2)
        eventually(lambda: client.subscribers()[0]["events"]["queued"] == 0)
    first, second = batches
    assert first.id == second.id and (first.attempt, second.attempt) == (1, 2)
    assert (second.lane, second.first_seq, second.last_seq) == ("f:ü/b", 1, 1)
    assert second.events[0]["url"] == url(1)


def test_a_receiver_written_with_standardwebhooks_verifies_our_deliveries(client, topic):
    seen: list[Any] = []
    client.subscribe([topic], "http://127.0.0.1:1/", UUID)
    webhook = Webhook(client.secret())
    stranger = Webhook(OTHER)

    def app(environ: Any, start_response: Any) -> list[bytes]:
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_WEBHOOK_")
        }
        try:
            stranger.verify(body, headers)
        except WebhookVerificationError:
            seen.extend(webhook.verify(body, headers))
        start_response("204 No Content", [])
        return []

    with serving(app) as callback:
        client.subscribe([topic], callback, UUID, timeout=0)
        client.created(topic, url(1), t=5)
        eventually(lambda: seen)
    assert seen == [{"topic": topic, "type": "create", "url": url(1), "t": 5}]

from __future__ import annotations

import base64
import time
from dataclasses import replace
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from routemaster import __version__
from routemaster.delivery.message import compose
from routemaster.domain.batch import Batch
from routemaster.domain.receiver import Receiver
from routemaster.domain.signature import new_secret
from tests.delivery.posting import collect, courier
from tests.zoo import OK, Zoo

# No clock decides here: the machine may be busy.
PATIENT = settings(deadline=None)

OLD, NEW = new_secret(), new_secret()
EVENTS = (b'{"topic":"cats","n":1}', b'{"topic":"cats","n":2}')
BATCH = Batch("b-1", "alice", "0", 1_000, 0, 41, EVENTS)
RECEIVER = Receiver("alice", "http://127.0.0.1/", "the-uuid", (NEW,), 100)


def sent(batch: Batch = BATCH, receiver: Receiver = RECEIVER, dropped=()):
    """What arrives at a subscriber."""
    now_ms = int(time.time() * 1000)  # the verifying library compares with the real time
    with Zoo() as zoo, courier() as made:
        message = compose(batch, replace(receiver, callback=zoo.keep(OK)), now_ms, dropped)
        made.send("it", message)
        ((_, response),) = collect(made)
    assert response.status == 200
    (request,) = zoo.requests
    return request


def verify(secret: str, request) -> object:
    headers = {name.lower(): value for name, value in request.headers}
    return Webhook(secret).verify(request.body, headers)


def test_the_body_is_the_events_as_they_are_stored():
    assert sent().body == b'[{"topic":"cats","n":1},{"topic":"cats","n":2}]'
    assert compose(replace(BATCH, events=()), RECEIVER, 0).body == b"[]"


def test_the_headers():
    request = sent(replace(BATCH, attempts=2))
    assert request.header("content-type") == "application/json"
    assert request.header("user-agent") == f"routemaster/{__version__}"
    assert request.header("webhook-id") == "b-1"
    assert request.header("routemaster-attempt") == "3"
    assert request.header("routemaster-lane") == "0"
    assert request.header("routemaster-sequence") == "41-42"
    names = [name.lower() for name, _ in request.headers]
    assert len(names) == len(set(names))
    assert "expect" not in names
    assert "routemaster-dropped" not in names


def test_the_uuid_is_the_basic_user_name():
    scheme, _, credentials = sent().header("authorization").partition(" ")
    assert (scheme, base64.b64decode(credentials)) == ("Basic", b"the-uuid:x")


def test_the_time_is_in_whole_seconds():
    assert "webhook-timestamp: 1" in compose(BATCH, RECEIVER, 1_999).headers


def test_the_standard_library_for_webhooks_verifies_it():
    request = sent()
    assert verify(NEW, request) == [{"topic": "cats", "n": 1}, {"topic": "cats", "n": 2}]
    with pytest.raises(WebhookVerificationError):
        verify(OLD, request)
    with pytest.raises(WebhookVerificationError):
        verify(NEW, replace(request, body=request.body.replace(b"1", b"3")))


def test_while_a_secret_is_replaced_either_verifies():
    request = sent(receiver=replace(RECEIVER, secrets=(NEW, OLD)))
    assert verify(NEW, request) == verify(OLD, request)
    assert len(request.header("webhook-signature").split(" ")) == 2


def test_without_a_secret_there_is_no_signature():
    request = sent(receiver=replace(RECEIVER, secrets=()))
    assert "webhook-signature" not in [name.lower() for name, _ in request.headers]


def test_a_retry_has_the_same_id_and_body():
    first, second = (compose(replace(BATCH, attempts=n), RECEIVER, n * 5_000) for n in (0, 1))
    assert first.body == second.body
    assert "webhook-id: b-1" in first.headers
    assert "webhook-id: b-1" in second.headers


def test_what_was_dropped_is_told():
    assert sent(dropped=[(3, 9), (12, 12)]).header("routemaster-dropped") == "3-9, 12-12"


@pytest.mark.parametrize("lane", ["0", "17", "f:prod", "f:a b/ü%|\t,;\"'", "f:", "f:\U0001f600"])
def test_a_lane_is_percent_encoded(lane):
    shown = sent(replace(BATCH, lane=lane)).header("routemaster-lane")
    assert shown.isascii() and not set(shown) & set(' ,;"')
    assert unquote(shown) == lane


EVIL = "x\r\nX-Evil: 1\r\n\r\nGET / HTTP/1.1\n\0\x85\u2028"


def test_no_text_of_others_becomes_a_header():
    good = [name for name, _ in sent().headers]
    request = sent(replace(BATCH, lane=f"f:{EVIL}"), replace(RECEIVER, uuid=EVIL, name=EVIL))
    assert [name for name, _ in request.headers] == good
    assert base64.b64decode(request.header("authorization").removeprefix("Basic ")) == (
        f"{EVIL}:x".encode()
    )


@PATIENT
@given(st.text(max_size=50), st.text(max_size=50))
def test_headers_are_always_one_line_of_visible_ascii(facet, uuid):
    batch, receiver = replace(BATCH, lane=f"f:{facet}"), replace(RECEIVER, uuid=uuid)
    message = compose(batch, receiver, 0)
    assert len(message.headers) == len(compose(BATCH, RECEIVER, 0).headers)
    assert all(line.isascii() and line.isprintable() for line in message.headers)

"""Each kind of subscriber, and what the courier says of it."""

from __future__ import annotations

import gzip
import socket
import time

import pytest

from routemaster.delivery.courier import EXCERPT_BYTES, RESPONSE_BYTES
from routemaster.delivery.outcome import Outcome, Response, Verdict
from tests.delivery.posting import PATIENCE_S, courier, deliver, message, outcome
from tests.zoo import OK, Visit, Zoo, answering

SOON_S = 0.3
# How many times its own deadline a transfer may take here: the machine may be busy.
LATE = 20


@pytest.fixture
def zoo():
    with Zoo() as made:
        yield made


def visit(zoo: Zoo, animal, body: bytes = b"[]") -> Response:
    with courier() as made:
        return deliver(made, zoo.keep(animal), body)


# --- it does not come to an end -------------------------------------------------------------


def hang(visit: Visit) -> None:
    visit.hang()


def hang_after_head(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    visit.hang()


def drip_head(visit: Visit) -> None:
    visit.drip(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000)


def drip_body(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    visit.drip(b"x" * 100_000)


def drip_chunks(visit: Visit) -> None:
    visit.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    visit.drip(b"1\r\nx\r\n" * 100_000)


def promise_for_ever(visit: Visit) -> None:
    # Slowly, because libcurl has a limit on the bytes of all heads together.
    while not visit.zoo.closing.wait(0.01):
        visit.send(b"HTTP/1.1 100 Continue\r\n\r\n")


ENDLESS = [hang, hang_after_head, drip_head, drip_body, drip_chunks, promise_for_ever]


@pytest.mark.parametrize("animal", ENDLESS, ids=lambda each: each.__name__)
def test_what_does_not_end_is_ended_by_the_deadline(zoo, animal):
    started_s = time.monotonic()
    with courier(SOON_S) as made:
        response = deliver(made, zoo.keep(animal))
    assert SOON_S * 0.9 < time.monotonic() - started_s < SOON_S * LATE
    assert (response.status, response.error) == (0, "timeout")
    assert outcome(response) == Outcome(Verdict.FAILED, "timeout")
    assert len(zoo.visits) == 1


def test_a_subscriber_that_accepts_and_never_reads():
    started_s = time.monotonic()
    with Zoo(hang) as zoo, courier(SOON_S) as made:
        # More than the kernel takes for it.
        response = deliver(made, zoo.url(), b"x" * 20_000_000)
        assert response == Response(error="timeout")
        assert time.monotonic() - started_s < SOON_S * LATE
        assert zoo.requests == []


def test_promises_without_a_pause_end_too(zoo):
    def promise(visit: Visit) -> None:
        while not visit.zoo.closing.is_set():
            visit.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)

    started_s = time.monotonic()
    with courier(SOON_S) as made:
        response = deliver(made, zoo.keep(promise))
    assert time.monotonic() - started_s < SOON_S * LATE
    assert outcome(response).verdict is Verdict.FAILED


def test_a_hanging_subscriber_costs_no_turns(zoo):
    turns = 0
    with courier(SOON_S) as made:
        made.send("it", message(zoo.keep(hang)))
        while not made.wait(PATIENCE_S)[0]:
            turns += 1
            assert turns < 50


# --- it says too much -----------------------------------------------------------------------


def test_a_long_body_is_not_read_and_its_status_stands(zoo):
    size = 200_000_000

    def flood(visit: Visit) -> None:
        visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        while visit.sent_bytes < size:
            visit.send(b"x" * 100_000)

    response = visit(zoo, flood)
    assert outcome(response) == Outcome(Verdict.DELIVERED)
    assert response.excerpt == b"x" * EXCERPT_BYTES
    assert RESPONSE_BYTES < response.received_bytes < 2 * RESPONSE_BYTES
    assert zoo.visits[0].sent_bytes < size / 4  # what the kernel buffers


def test_a_long_failure_is_a_failure(zoo):
    head = f"HTTP/1.1 500 Oh no\nContent-Length: {3 * RESPONSE_BYTES}"
    response = visit(zoo, answering(head, b"x" * 3 * RESPONSE_BYTES))
    assert outcome(response) == Outcome(Verdict.FAILED, "http_500")


def test_a_body_at_the_limit_keeps_the_connection(zoo):
    head = f"HTTP/1.1 200 OK\nContent-Length: {RESPONSE_BYTES}"
    url = zoo.keep(answering(head, b"x" * RESPONSE_BYTES))
    with courier() as made:
        assert deliver(made, url) == deliver(made, url)
    assert len(zoo.visits) == 1


def test_a_gzip_bomb_is_not_unpacked(zoo):
    bomb = gzip.compress(bytes(20_000_000))
    head = f"HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: {len(bomb)}"
    response = visit(zoo, answering(head, bomb))
    assert outcome(response) == Outcome(Verdict.DELIVERED)
    assert response.received_bytes == len(bomb) < RESPONSE_BYTES
    assert response.excerpt == bomb[:EXCERPT_BYTES]


def test_a_head_without_end_is_a_failure(zoo):
    def flood(visit: Visit) -> None:
        visit.send(b"HTTP/1.1 200 OK\r\n")
        while visit.sent_bytes < 200_000_000:
            visit.send(b"X: " + b"x" * 10_000 + b"\r\n")

    response = visit(zoo, flood)
    assert outcome(response).verdict is Verdict.FAILED
    assert zoo.visits[0].sent_bytes < 50_000_000


# --- it speaks something else ---------------------------------------------------------------


def raw(data: bytes, *, reset: bool = False):
    def animal(visit: Visit) -> None:
        visit.send(data)
        if reset:
            visit.reset()
        else:
            visit.hang_up()

    return animal


@pytest.mark.parametrize(
    "data", [b"220 mail.example.com ESMTP\r\n", b"\x00\xff" * 500, b"\r\n\r\n", b"HTTP/9.9 x\r\n"]
)
def test_what_is_not_http_is_a_failure(zoo, data):
    response = visit(zoo, raw(data))
    assert outcome(response) == Outcome(Verdict.FAILED, "network")


@pytest.mark.parametrize("data", [b"", b"HTTP/1.", b"HTTP/1.1 200 OK\r\nX-Half: "])
def test_a_connection_reset_before_the_answer_is_whole(zoo, data):
    response = visit(zoo, raw(data, reset=True))
    assert outcome(response) == Outcome(Verdict.FAILED, "reset")


@pytest.mark.parametrize(
    "data", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX-Half: ",
             b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
             b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"],
)  # fmt: skip
def test_a_connection_closed_before_the_answer_is_whole(zoo, data):
    assert outcome(visit(zoo, raw(data))) == Outcome(Verdict.FAILED, "reset")


def test_a_connection_reset_in_mid_request():
    def bite(visit: Visit) -> None:
        visit.connection.recv(1000)
        visit.reset()

    with Zoo(bite) as zoo, courier() as made:
        response = deliver(made, zoo.url(), b"x" * 20_000_000)
    assert outcome(response) == Outcome(Verdict.FAILED, "reset")


# --- it answers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        "HTTP/1.1 200 OK\nContent-Length: 0",
        "HTTP/1.1 200\nContent-Length: 0",  # no reason, and no space before it
        "HTTP/1.1 200 \nContent-Length: 0",
        "HTTP/1.1 201 Created\nContent-Length: 0",
        "HTTP/1.1 204 No Content",
        "HTTP/1.1 299 ?\nContent-Length: 0",
        "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\nContent-Length: 0",
        "HTTP/1.1 103 Early Hints\nRetry-After: 5\n\nHTTP/1.1 204 No Content",
    ],
)
def test_any_2xx_delivers(zoo, head):
    response = visit(zoo, answering(head))
    assert outcome(response) == Outcome(Verdict.DELIVERED)
    assert response.retry_after == ""


@pytest.mark.parametrize("head", ["HTTP/1.1 200 OK", "HTTP/1.0 200 OK"])
def test_without_a_length_the_answer_ends_with_the_connection(zoo, head):
    assert visit(zoo, answering(head, close=True)) == Response(status=200)


@pytest.mark.parametrize("status", [400, 401, 404, 413, 429, 500, 502, 503, 599])
def test_any_other_status_fails_and_names_it(zoo, status):
    response = visit(zoo, answering(f"HTTP/1.1 {status} ?\nContent-Length: 3", b"why"))
    assert response == Response(status=status, excerpt=b"why", received_bytes=3)
    assert outcome(response) == Outcome(Verdict.FAILED, f"http_{status}")


def test_410_is_gone(zoo):
    response = visit(zoo, answering("HTTP/1.1 410 Gone\nContent-Length: 0"))
    assert outcome(response) == Outcome(Verdict.GONE, "http_410")


WAITS = [
    ("1", 1_000),
    ("120", 120_000),
    ("0", 1_000),
    ("1000000000", 3_600_000),
    ("9" * 5_000, 3_600_000),
    ("Wed, 21 Oct 2015 07:28:00 GMT", 1_000),
    ("Fri, 31 Dec 9999 23:59:59 GMT", 3_600_000),
    ("-1", None),
    ("x", None),
    ("1.5", None),
    ("", None),
    ("\xb2", None),
]


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("text, wait_ms", WAITS, ids=lambda each: str(each)[:10])
def test_retry_after(zoo, status, text, wait_ms):
    head = f"HTTP/1.1 {status} ?\nContent-Length: 0\nretry-AFTER: {text}"
    error = f"http_{status}"
    expected = Outcome(Verdict.FAILED, error)
    if wait_ms is not None:
        expected = Outcome(Verdict.THROTTLED, error, wait_ms)
    assert outcome(visit(zoo, answering(head))) == expected


@pytest.mark.parametrize(
    "length, error",
    [("9", "reset"), ("-1", "network"), ("x", "network"), ("5x", "network")],
)
def test_a_length_that_is_wrong_is_no_answer(zoo, length, error):
    head = f"HTTP/1.1 200 OK\nContent-Length: {length}"
    response = visit(zoo, answering(head, b"12345", close=True))
    assert outcome(response) == Outcome(Verdict.FAILED, error)


def test_a_length_beyond_all_numbers_is_none(zoo):
    head = f"HTTP/1.1 200 OK\nContent-Length: {'9' * 30}"
    response = visit(zoo, answering(head, b"12345", close=True))
    assert response == Response(status=200, excerpt=b"12345", received_bytes=5)


def test_what_follows_a_length_too_short_is_never_taken_for_an_answer(zoo):
    lie = b"okHTTP/1.1 500 Oh no\r\nContent-Length: 0\r\n\r\n"
    url = zoo.keep(answering("HTTP/1.1 200 OK\nContent-Length: 2", lie))
    with courier() as made:
        for _ in range(2):
            response = deliver(made, url)
            assert response == Response(status=200, excerpt=b"ok", received_bytes=2)


# --- it sends us elsewhere ------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_redirect_is_a_failure_and_not_followed(zoo, status, host):
    target = zoo.url("/target", host)
    head = f"HTTP/1.1 {status} Elsewhere\nLocation: {target}\nContent-Length: 0"
    zoo.keep(OK, "/target")
    assert outcome(visit(zoo, answering(head))) == Outcome(Verdict.FAILED, "redirect")
    assert [request.path for request in zoo.requests] == ["/"]


def test_a_redirect_loop_is_one_request(zoo):
    head = f"HTTP/1.1 302 Here\nLocation: {zoo.url()}\nContent-Length: 0"
    assert outcome(visit(zoo, answering(head))) == Outcome(Verdict.FAILED, "redirect")
    assert len(zoo.requests) == 1


# --- it is not there ------------------------------------------------------------------------


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with courier() as made:
        assert deliver(made, f"http://127.0.0.1:{port}/") == Response(error="refused")


def test_a_name_that_does_not_exist():
    with courier() as made:
        assert deliver(made, "http://does-not-exist.invalid/") == Response(error="dns")


# --- it must not be dialled -----------------------------------------------------------------

FORBIDDEN = [
    ("127.0.0.1", "loopback"),
    ("localhost", "loopback"),
    ("LOCALHOST", "loopback"),
    ("sub.localhost", "loopback"),
    ("[::1]", "loopback"),
    ("[::ffff:127.0.0.1]", "loopback"),
    ("[::127.0.0.1]", "loopback"),
    ("[64:ff9b::7f00:1]", "loopback"),
    ("0x7f.1", "loopback"),
    ("0177.0.0.1", "loopback"),
    ("2130706433", "loopback"),
    ("127.1", "loopback"),
    ("0.0.0.0", "unspecified"),
    ("0", "unspecified"),
    ("[::]", "unspecified"),
    ("10.0.0.1", "private"),
    ("192.168.1.1", "private"),
    ("169.254.1.1", "link-local"),
    ("[fe80::1]", "link-local"),
    ("169.254.169.254", "metadata"),
    ("[fd00:ec2::254]", "metadata"),
    ("224.0.0.1", "multicast"),
    ("255.255.255.255", "broadcast"),
]


@pytest.mark.parametrize("host, reason", FORBIDDEN, ids=[host for host, _ in FORBIDDEN])
def test_a_forbidden_address_is_not_dialled(zoo, host, reason):
    zoo.keep(OK)
    with courier(allowed_networks=()) as made:
        response = deliver(made, zoo.url(host=host))
    assert response == Response(error=f"address_{reason}")
    assert outcome(response) == Outcome(Verdict.FAILED, f"address_{reason}")
    assert zoo.visits == []


def test_a_name_with_one_address_that_may_be_dialled_is_delivered_there(zoo):
    """libcurl knows localhost as ::1 and 127.0.0.1; only the second is allowed here."""
    zoo.keep(OK)
    with courier() as made:
        assert outcome(deliver(made, zoo.url(host="localhost"))) == Outcome(Verdict.DELIVERED)
    assert len(zoo.requests) == 1


def test_when_that_address_does_not_answer_it_is_not_the_other_that_is_blamed(zoo):
    zoo.keep(hang)
    with courier(SOON_S) as made:
        assert deliver(made, zoo.url(host="localhost")) == Response(error="timeout")

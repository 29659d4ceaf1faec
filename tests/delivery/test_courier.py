from __future__ import annotations

import gc
import os
import resource
import time

import pytest

from routemaster.clock import SystemClock
from routemaster.delivery.courier import Courier
from routemaster.delivery.message import Message
from routemaster.delivery.outcome import Response
from tests.delivery.posting import PATIENCE_S, collect, courier, deliver, message, rules
from tests.zoo import OK, Visit, Zoo, answering

DELIVERED = Response(status=200, excerpt=b"ok", received_bytes=2)


@pytest.fixture
def zoo():
    with Zoo() as made:
        yield made


def open_files() -> int:
    gc.collect()  # what other tests left behind is not ours
    return len(os.listdir("/dev/fd"))


def eventually(condition) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up_s
        time.sleep(0.005)


def test_a_request_is_a_plain_post_of_the_message(zoo):
    body = bytes(range(256)) * 10_000
    with courier() as made:
        assert deliver(made, zoo.keep(OK, "/a/b"), body) == DELIVERED
    (request,) = zoo.requests
    assert request.head.startswith(b"POST /a/b HTTP/1.1\r\n")
    assert request.body == body
    assert sorted(name for name, _ in request.headers) == [
        "Accept", "Content-Length", "Content-Type", "Host", "User-Agent",
    ]  # fmt: skip


def test_a_connection_is_kept_and_used_again(zoo):
    url = zoo.keep(OK)
    with courier() as made:
        assert [deliver(made, url) for _ in range(20)] == [DELIVERED] * 20
    assert len(zoo.requests) == 20
    assert len(zoo.visits) == 1


def test_a_kept_connection_that_was_closed_meanwhile_is_made_anew(zoo):
    url = zoo.keep(OK)
    with courier() as made:
        assert deliver(made, url) == DELIVERED
        zoo.visits[0].hang_up()
        assert deliver(made, url) == DELIVERED
    assert len(zoo.visits) == 2
    assert len(zoo.requests) == 2


def test_a_request_lost_on_a_kept_connection_is_sent_once_more_and_no_more(zoo):
    """libcurl does this by itself; the subscriber sees the same batch id twice."""

    def once(visit: Visit) -> None:
        if len(zoo.requests) == 1:
            OK(visit)
        else:
            visit.hang_up()

    url = zoo.keep(once)
    with courier() as made:
        assert deliver(made, url) == DELIVERED
        assert deliver(made, url) == Response(error="reset")
    assert len(zoo.requests) == 3
    assert len(zoo.visits) == 2


def test_not_more_connections_are_kept_than_the_rules_say():
    with courier(kept_connections=2) as made, Zoo() as one, Zoo() as two, Zoo() as three:
        urls = [each.keep(OK) for each in (one, two, three)]
        for url in urls:
            deliver(made, url)
        for url in urls[1:]:
            deliver(made, url)
        assert [len(each.visits) for each in (one, two, three)] == [1, 1, 1]
        deliver(made, urls[0])
        assert len(one.visits) == 2


def test_nothing_of_one_transfer_is_seen_in_the_next(zoo):
    slow_down = answering("HTTP/1.1 503 Busy\nRetry-After: 9\nContent-Length: 4", b"busy")
    with courier() as made:
        first = deliver(made, zoo.keep(slow_down, "/first"), b"[1,2,3]")
        made.send("it", Message(zoo.keep(OK, "/second"), ("X-Only: x",), b"[4]"))
        ((_, second),) = collect(made)
    assert (first.status, first.retry_after) == (503, "9")
    assert second == DELIVERED
    assert [request.body for request in zoo.requests] == [b"[1,2,3]", b"[4]"]
    assert zoo.requests[1].header("x-only") == "x"
    assert "X-Only" not in zoo.requests[0].head.decode()


def test_a_fast_subscriber_does_not_wait_for_slow_ones(zoo):
    with courier() as made:
        for number in range(50):
            made.send(number, message(zoo.keep(Visit.hang, "/slow")))
        made.send("fast", message(zoo.keep(OK, "/fast")))
        assert collect(made) == [("fast", DELIVERED)]
        assert len(made) == 50


def test_many_at_once_each_get_their_own_answer(zoo):
    for number in range(50):
        head = f"HTTP/1.1 {200 + number} ?\nContent-Length: 2"
        zoo.keep(answering(head, b"%02d" % number), f"/{number}")
    with courier() as made:
        for number in range(50):
            made.send(number, message(zoo.url(f"/{number}"), b"%d" % number))
        ended = dict(collect(made, 50))
        assert len(made) == 0
    # 204 and 205 have no body, whatever follows their head.
    assert {key: response.status for key, response in ended.items()} == {
        number: 200 + number for number in range(50)
    }
    assert all(request.path == "/" + request.body.decode() for request in zoo.requests)


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_is_not_used(zoo, monkeypatch, name):
    with Zoo() as proxy, courier() as made:
        for each in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(each, raising=False)
        monkeypatch.setenv(name, proxy.keep(OK))
        assert deliver(made, zoo.keep(OK)) == DELIVERED
        assert proxy.visits == []


def test_a_password_file_is_not_read(zoo, monkeypatch, tmp_path):
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    with courier() as made:
        deliver(made, zoo.keep(OK))
    assert b"uthorization" not in zoo.requests[0].head


# --- others' files --------------------------------------------------------------------------


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def test_waiting_ends_when_another_file_can_be_read(pipe):
    readable, writable = pipe
    with courier() as made:
        made.listen(readable)
        assert made.wait(0) == ([], set())
        os.write(writable, b".")
        assert made.wait(PATIENCE_S) == ([], {readable})
        assert made.wait(PATIENCE_S) == ([], {readable})  # until it is read
        os.read(readable, 1)
        assert made.wait(0) == ([], set())


def test_a_file_is_heard_while_a_transfer_hangs(zoo, pipe):
    readable, writable = pipe
    with courier() as made:
        made.listen(readable)
        made.send("it", message(zoo.keep(Visit.hang)))
        eventually(lambda: made.wait(0) == ([], set()) and zoo.requests)
        os.write(writable, b".")
        eventually(lambda: made.wait(PATIENCE_S) == ([], {readable}))


def test_a_file_that_is_ignored_is_not_heard(pipe):
    readable, writable = pipe
    with courier() as made:
        made.listen(readable)
        os.write(writable, b".")
        made.ignore(readable)
        assert made.wait(0) == ([], set())


def test_a_file_closed_by_its_owner_can_be_ignored_and_its_number_used_again(zoo):
    readable, writable = os.pipe()
    with courier() as made:
        made.listen(readable)
        os.close(readable)
        os.close(writable)
        made.ignore(readable)
        assert deliver(made, zoo.keep(OK)) == DELIVERED  # its socket has that number, likely


# --- the end --------------------------------------------------------------------------------


def test_closing_ends_what_is_in_flight(zoo):
    gone = []

    def watch(visit: Visit) -> None:
        gone.append(visit.connection.recv(1))

    before = open_files()
    made = Courier(rules(), SystemClock())
    for number in range(5):
        made.send(number, message(zoo.keep(watch)))
    eventually(lambda: made.wait(0) and len(zoo.requests) == 5)
    made.close()
    eventually(lambda: gone == [b""] * 5)
    eventually(lambda: open_files() <= before)


def test_closing_before_the_first_turn(zoo):
    made = Courier(rules(), SystemClock())
    made.send("it", message(zoo.keep(OK)))
    made.send("name", message("http://does-not-exist.invalid/"))
    made.close()
    assert zoo.requests == []


def test_no_file_is_left_open(zoo):
    def flood(visit: Visit) -> None:
        visit.send(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 200_000)

    before = open_files()
    urls = [
        zoo.keep(OK, "/ok"),
        zoo.keep(flood, "/flood"),
        zoo.keep(Visit.reset, "/reset"),
        zoo.keep(Visit.hang_up, "/hang_up"),
        "http://127.0.0.1:1/",
        "http://10.0.0.1/",
        "http://does-not-exist.invalid/",
        zoo.url("/ok", host="localhost"),
    ]
    with courier() as made:
        for number in range(200):
            made.send(number, message(urls[number % len(urls)]))
            if len(made) == 8:
                collect(made, 8)
    eventually(lambda: open_files() <= before)


def test_without_a_free_file_a_transfer_fails_and_the_next_succeeds(zoo, capfd):
    url = zoo.keep(OK)
    with courier() as made:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        os.close(next_file := os.dup(0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (next_file, hard))
        try:
            response = deliver(made, url)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert response == Response(error="refused")
        assert deliver(made, url) == DELIVERED
    # Raised inside a call from libcurl, where nobody can catch it; but not silently.
    assert "Too many open files" in capfd.readouterr().err


def test_what_cannot_be_sent_is_said_at_once_and_harms_no_other(zoo):
    with courier() as made:
        made.send("good", message(zoo.keep(OK)))
        for bad in (message("http://127.0.0.1/\0"), message("http://h\u00e9/")):
            with pytest.raises((ValueError, UnicodeError)):
                made.send("bad", bad)
        assert collect(made) == [("good", DELIVERED)]
        assert len(made) == 0

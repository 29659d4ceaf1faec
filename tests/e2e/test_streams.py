"""Topics' live streams from the real web process: what comes, who misses what, and how it ends."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

import pytest

from tests.conftest import ROOT_KEY
from tests.e2e.running import event, events
from tests.integration.processes import PATIENCE_S, WebProcess, eventually

READERS = 20


class Stream:
    """A reader that reads when it is told to."""

    def __init__(self, port: int, token: str, topic: str, last: str = "", small: bool = False):
        self.sock = socket.socket()
        if small:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(("127.0.0.1", port))
        head = f"GET /topics/{topic}/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}"
        head += f"\r\nLast-Event-ID: {last}" if last else ""
        self.sock.sendall(head.encode() + b"\r\n\r\n")
        self._text = b""
        self.head = self.read_part(b"\r\n\r\n")

    def read_part(self, end: bytes = b"\n\n") -> str:
        while end not in self._text:
            received = self.sock.recv(1 << 16)
            if not received:
                raise EOFError(self._text)
            self._text += received
        part, _, self._text = self._text.partition(end)
        return part.decode()

    def wait_until_live(self) -> Stream:
        assert self.read_part() == "retry: 2000\n: live"
        return self

    def read(self) -> dict[str, Any]:
        """The next message that is not a sign of life."""
        part = self.read_part()
        while part == ":":
            part = self.read_part()
        fields = dict(line.split(": ", 1) for line in part.split("\n"))
        return fields | {"data": json.loads(fields["data"])}

    def close(self) -> None:
        self.sock.close()


@pytest.fixture
def follow(bus):
    with contextlib.ExitStack() as stack:

        def make(client: Any, topic: str, port: int = 0, **options: Any) -> Stream:
            made = Stream(port or bus.web.port, client.token, topic, **options)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def publisher(bus, topic):
    """It has published once: there is no stream of a topic that does not exist."""
    made = bus.client()
    made.publish(topic, event(0))
    return made


def test_what_is_accepted_is_told_at_once_and_numbered(bus, publisher, topic, follow):
    stream = follow(bus.client(), topic)
    assert stream.head.startswith("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
    stream.wait_until_live()
    publisher.publish(topic, event(1, data={"text": "a\nb"}))
    publisher.publish(topic, *events(2, 4))
    publisher.publish(f"{topic}_other", event(9))
    publisher.publish(topic, event(5))
    got = [stream.read() for _ in range(5)]
    assert [(one["id"], one["data"]["t"]) for one in got] == [(str(n + 1), n) for n in range(1, 6)]
    assert got[0]["data"]["data"] == {"text": "a\nb"}


def test_what_was_known_already_is_not_told_again(bus, publisher, topic, follow):
    stream = follow(publisher, topic).wait_until_live()
    publisher.publish(topic, event(1, id="a"), event(2, id="b"))
    publisher.publish(topic, event(1, id="a"), event(3, id="c"), event(2, id="b"))
    got = [stream.read() for _ in range(3)]
    assert [(one["id"], one["data"]["t"]) for one in got] == [("2", 1), ("3", 2), ("4", 3)]


def test_who_comes_back_is_told_how_much_it_missed(bus, publisher, topic, follow):
    publisher.publish(topic, *events(1, 6))
    stream = follow(publisher, topic, last="3").wait_until_live()
    publisher.publish(topic, event(7))
    assert stream.read() == {"event": "skipped", "data": {"events": 4}}
    assert stream.read()["id"] == "8"


def test_many_readers_hold_no_threads(bus, publisher, topic, follow):
    streams = [follow(publisher, topic) for _ in range(READERS)]
    for stream in streams:
        stream.wait_until_live()
    publisher.publish(topic, event(1))
    assert [stream.read()["data"]["t"] for stream in streams] == [1] * READERS


def test_a_slow_reader_slows_nobody_and_is_told_what_it_missed(bus, publisher, topic, follow):
    slow = follow(publisher, topic, small=True).wait_until_live()
    quick = follow(publisher, topic).wait_until_live()
    long = "https://pub.example/" + "x" * 1000
    for first in range(1, 1001, 50):
        publisher.publish(topic, *[event(n, url=long) for n in range(first, first + 50)])
        for number in range(first, first + 50):
            assert quick.read()["data"]["t"] == number
    got: list[int] = []
    skipped = 0
    while (not got or got[-1] < 1001) and (message := slow.read()):
        if message.get("event") == "skipped":
            skipped += message["data"]["events"]
            continue
        got.append(message["data"]["t"])
        if len(got) == 100:  # there is room again by now
            publisher.publish(topic, event(1001))
    assert skipped > 0 and len(got) + skipped == 1001
    assert got == sorted(set(got))


def test_a_revoked_token_and_a_deleted_topic_end_their_streams(bus, publisher, topic, follow):
    reader = bus.client()
    revoked = follow(reader, topic).wait_until_live()
    bus.web.call("DELETE", f"/api_tokens/{reader.token}", ROOT_KEY)
    assert revoked.read() == {
        "event": "end", "data": {"reason": "the token is not known any more"},
    }  # fmt: skip
    deleted = follow(publisher, topic).wait_until_live()
    publisher.delete_topic(topic)
    assert deleted.read() == {"event": "end", "data": {"reason": "the topic was deleted"}}
    for stream in (revoked, deleted):
        with pytest.raises(EOFError):
            stream.read()


def test_streams_are_bounded_and_end_with_the_process(bus, publisher, topic, follow):
    other = WebProcess(bus.redis.url, ROUTEMASTER_WEB_PROCESSES="1", ROUTEMASTER_MAX_STREAMS="2")
    try:
        other.start()
        streams = [follow(publisher, topic, port=other.port) for _ in range(2)]
        for stream in streams:
            stream.wait_until_live()
        refused = other.call("GET", f"/topics/{topic}/stream", publisher.token)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "5")
        streams[0].close()

        def has_room() -> bool:
            asked = follow(publisher, topic, port=other.port)
            return bool(asked.head.startswith("HTTP/1.1 200"))

        eventually(has_room)
        other.ask_to_end()
        assert streams[1].read() == {"event": "end", "data": {"reason": "stopping"}}
        assert other.wait() == 0
        assert "Traceback" not in other.log()
    finally:
        other.close()

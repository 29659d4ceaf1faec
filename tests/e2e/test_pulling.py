"""Pulling from the real processes: many who wait, who go away, who are slow."""

from __future__ import annotations

import base64
import contextlib
import socket
from typing import Any

import pytest

from tests.e2e.running import Client, event, events, unique
from tests.integration.processes import PATIENCE_S, WebProcess, eventually

WAITING = 64


class Puller(Client):
    """A client that takes its batches itself."""

    def __init__(self, web: WebProcess, name: str) -> None:
        super().__init__(web, name)
        self.web = web

    def follow(self, *topics: str, **fields: Any) -> None:
        self._call(
            "POST", "/subscriber", self.token, json={"topics": topics, "timeout": 0} | fields
        )

    def take(self, query: str = "?wait=20") -> Any:
        path = f"/subscriber/batch{query}"
        return self.web.call("GET", path, self.token, timeout=PATIENCE_S + 10)

    def done(self, batch: Any) -> None:
        self._call("DELETE", f"/subscriber/batch/{batch.headers['webhook-id']}", self.token)

    def refuse(self, batch: Any, delay: int) -> None:
        path = f"/subscriber/batch/{batch.headers['webhook-id']}/refuse"
        self._call("POST", path, self.token, json={"delay": delay})

    def ask(self, query: str = "?wait=20", port: int = 0) -> socket.socket:
        """Asks, and does not wait for the answer."""
        made = socket.create_connection(("127.0.0.1", port or self.web.port), PATIENCE_S)
        user = base64.b64encode(f"{self.token}:".encode()).decode()
        request = f"GET /subscriber/batch{query} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {user}"
        made.sendall(request.encode() + b"\r\n\r\n")
        return made


@pytest.fixture
def make_puller(bus):
    def make() -> Puller:
        return Puller(bus.web, unique("puller"))

    return make


def numbers(answer: Any) -> list[int]:
    return [row["t"] for row in answer.json()]


def heard_by(bus, name: str) -> int:
    """How many web processes listen for that subscriber."""
    with bus.redis.client() as redis:
        (_, count), *_ = redis.pubsub_numsub("rm:{0}:jobs:waiting:" + name)
        return int(count)


def read_answer(made: socket.socket) -> bytes:
    """Head and body, as long as the head says."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += made.recv(1 << 16) or pytest.fail(f"closed after {answer!r}")
    head, _, body = answer.partition(b"\r\n\r\n")
    lengths = [int(w[15:]) for w in head.split(b"\r\n") if w.lower().startswith(b"content-length")]
    while lengths and len(body) < lengths[0]:
        body += made.recv(1 << 16) or pytest.fail("closed")
    return head + b"\r\n\r\n" + body


def test_many_who_wait_hold_nobody_up_and_each_gets_one(bus, make_puller, topic):
    publisher, puller = bus.client(), make_puller()
    puller.follow(topic, concurrency=WAITING)
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(puller.ask()) for _ in range(WAITING)]
        eventually(lambda: heard_by(bus, puller.name))
        for number in range(20):
            bus.web.publish(publisher.token, f"{topic}_other", event(number)).raise_for_status()
        publisher.publish(topic, *[event(n, facet=f"f{n}") for n in range(WAITING)])
        answers = [read_answer(each) for each in waiting]
    assert {answer.split(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 200 OK"}
    found = sorted(
        int(answer.rpartition(b'"t":')[2].split(b",")[0].rstrip(b"}]")) for answer in answers
    )
    assert found == list(range(WAITING))


def test_who_goes_while_waiting_takes_nothing(bus, make_puller, topic):
    publisher, puller = bus.client(), make_puller()
    puller.follow(topic)
    gone = [puller.ask() for _ in range(3)]
    eventually(lambda: heard_by(bus, puller.name))
    for each in gone:
        each.close()
    with puller.ask() as stays:
        publisher.publish(topic, event(1))
        answer = read_answer(stays)
    assert answer.startswith(b"HTTP/1.1 200") and b"Routemaster-Attempt: 1\r\n" in answer


def test_who_waits_is_answered_when_the_process_stops(bus, make_puller, topic):
    puller = make_puller()
    puller.follow(topic)
    other = WebProcess(bus.redis.url, ROUTEMASTER_WEB_PROCESSES="1")
    try:
        other.start()
        with puller.ask("?wait=30", port=other.port) as waiting:
            eventually(lambda: heard_by(bus, puller.name))
            other.ask_to_end()
            assert read_answer(waiting).startswith(b"HTTP/1.1 204")
        assert other.wait() == 0
        assert "Traceback" not in other.log()
    finally:
        other.close()


def test_everything_in_order_with_refusals(bus, make_puller, topic):
    publisher, puller = bus.client(), make_puller()
    puller.follow(topic, max=10)
    publisher.publish(topic, *events(1, 195))
    got: list[int] = []
    refused = 0
    while len(got) < 195:
        batch = puller.take()
        assert batch.status_code == 200
        if batch.headers["Routemaster-Attempt"] == "1" and numbers(batch)[0] % 50 == 1:
            puller.refuse(batch, delay=0)
            refused += 1
        else:
            got += numbers(batch)
            puller.done(batch)
    assert (got, refused) == (list(range(1, 196)), 4)
    assert puller.subscription()["events"]["queued"] == 0
    outcomes = [row["outcome"] for op in puller.operations() for row in op["attempts"]]
    assert (outcomes.count("delivered"), outcomes.count("failed")) == (20, 4)


def test_a_batch_comes_again_when_its_lease_runs_out(bus, make_puller, topic):
    publisher, puller = bus.client(), make_puller()
    puller.follow(topic)
    publisher.publish(topic, event(1))
    late = puller.take("?wait=20&lease=1")
    # A worker gives it back, and that calls who waits.
    again = puller.take()
    assert again.headers["webhook-id"] == late.headers["webhook-id"]
    assert again.headers["Routemaster-Attempt"] == "2"
    puller.done(again)
    assert puller.subscription()["health_points"] == 99


def test_a_connection_is_kept_after_waiting(bus, make_puller, topic):
    publisher, puller = bus.client(), make_puller()
    puller.follow(topic)
    with puller.ask("?wait=1") as made:
        assert read_answer(made).startswith(b"HTTP/1.1 204")
        publisher.publish(topic, event(1))
        made.sendall(
            b"GET /subscriber/batch HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
            + puller.token.encode() + b"\r\n\r\n"
        )  # fmt: skip
        assert read_answer(made).startswith(b"HTTP/1.1 20")

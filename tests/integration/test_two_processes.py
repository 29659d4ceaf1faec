"""Two web processes and a subscription that comes and goes: nobody publishes by an old table."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import requests

from routemaster.bus import Bus
from routemaster.settings import Settings
from tests.busses import give_token
from tests.conftest import ROOT_KEY
from tests.integration.processes import PATIENCE_S, REQUEST_TIMEOUT_S
from tests.web.calls import SUBSCRIPTION

PUBLISHERS = 4
CHANGES = 24
# Publishes to see between two changes, so that most of them lie wholly between.
BETWEEN = 12


@dataclass(frozen=True)
class Span:
    """Something that began and was answered; `is_on` for changes: subscribed from then on."""

    start_s: float
    end_s: float
    url: str = ""
    is_on: bool = False


class Publishers:
    """Threads that publish one event after the other, each over its own connection."""

    def __init__(self, urls: list[str], token: str) -> None:
        self.done: list[Span] = []
        self.failures: list[object] = []
        self._moved = threading.Condition()
        self._stop = threading.Event()
        self._numbers = itertools.count()
        self._threads = [
            threading.Thread(target=self._run, args=(urls[n % len(urls)], token))
            for n in range(PUBLISHERS)
        ]

    def __enter__(self) -> Publishers:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def wait_for_more(self, count: int) -> None:
        with self._moved:
            target = len(self.done) + count
            enough = self._moved.wait_for(
                lambda: len(self.done) >= target or self.failures, PATIENCE_S
            )
        assert enough and not self.failures, self.failures

    def _run(self, base: str, token: str) -> None:
        try:
            with requests.Session() as session:
                session.auth = (token, "")
                while not self._stop.is_set():
                    self._publish(session, base)
        except Exception as error:
            self._note(failure=error)

    def _publish(self, session: requests.Session, base: str) -> None:
        url = f"https://pub.example/{next(self._numbers)}"
        event = {"type": "update", "url": url}
        start_s = time.monotonic()
        response = session.post(f"{base}/topics/orders", json=event, timeout=REQUEST_TIMEOUT_S)
        span = Span(start_s, time.monotonic(), url)
        if response.status_code == 204:
            self._note(span=span)
        else:
            self._note(failure=response.text)

    def _note(self, span: Span | None = None, failure: object = None) -> None:
        with self._moved:
            if span:
                self.done.append(span)
            else:
                self.failures.append(failure)
            self._moved.notify_all()


@pytest.fixture
def bus(make_bus: Callable[..., Bus], redis_server) -> Bus:
    env = {"ROUTEMASTER_ROOT_KEY": ROOT_KEY, "ROUTEMASTER_REDIS_URL": redis_server.url}
    return make_bus(Settings.from_env(env))


@pytest.fixture
def webs(redis_server, web_process):
    few = {"ROUTEMASTER_WEB_PROCESSES": "1", "ROUTEMASTER_WEB_THREADS": "4"}
    made = [web_process(redis_server.url, **few).launch() for _ in range(2)]
    for web in made:
        web.wait_until_up()
    return made


@pytest.fixture
def publisher(bus) -> str:
    return give_token(bus, "alice")


@pytest.fixture
def subscriber(bus) -> str:
    return give_token(bus, "bob")


def change(web, token: str, method: str, path: str, body: object = None) -> Span:
    start_s = time.monotonic()
    assert web.call(method, path, token, json=body).status_code == 204
    return Span(start_s, time.monotonic(), is_on=method == "POST")


def queue_of(bus: Bus, name: str) -> list[str]:
    keys, lane = bus.keys, f"{name}|0"
    bids = bus.link.call("LRANGE", keys.lane_batches_prefix + lane, 0, -1)
    rows = bus.link.many(("LRANGE", keys.batch_prefix + bid.decode(), 5, -1) for bid in bids)
    return [json.loads(event)["url"] for row in rows for event in row]


def expected(spans: list[Span], changes: list[Span]) -> tuple[set[str], set[str]]:
    """URLs that must be queued, and that must not: those published wholly between two changes."""
    must: set[str] = set()
    must_not: set[str] = set()
    ends = [*changes[1:], Span(float("inf"), float("inf"))]
    for span in spans:
        for before, after in zip(changes, ends, strict=True):
            if before.end_s < span.start_s and span.end_s < after.start_s:
                (must if before.is_on else must_not).add(span.url)
    return must, must_not


def test_leaving_and_coming_back(webs, bus, publisher, subscriber):
    join = ("POST", "/subscription", {**SUBSCRIPTION, "topics": ["orders"]})
    leave = ("DELETE", "/subscriber/topics/orders")
    changes = []
    with Publishers([web.url for web in webs], publisher) as publishers:
        for n in range(CHANGES):
            publishers.wait_for_more(BETWEEN)
            # Through the one and the other, and each of the two ways through each.
            web = webs[n // 2 % 2]
            changes.append(change(web, subscriber, *(leave if n % 2 else join)))
        publishers.wait_for_more(BETWEEN)
    must, must_not = expected(publishers.done, changes)
    queued = queue_of(bus, "bob")
    assert len(must) > CHANGES and len(must_not) > CHANGES  # or it has shown nothing
    assert must - set(queued) == set()
    assert must_not & set(queued) == set()
    assert len(queued) == len(set(queued))
    assert set(queued) <= {span.url for span in publishers.done}


def test_goodbye_and_a_new_beginning(webs, bus, publisher, subscriber):
    join = ("POST", "/subscription", {**SUBSCRIPTION, "topics": ["orders"]})
    changes = []
    with Publishers([web.url for web in webs], publisher) as publishers:
        for n in range(CHANGES + 1):
            publishers.wait_for_more(BETWEEN)
            web = webs[n // 2 % 2]
            if n % 2:
                changes.append(change(web, subscriber, "DELETE", "/subscriber"))
                assert queue_of(bus, "bob") == []
            else:
                changes.append(change(web, subscriber, *join))
        publishers.wait_for_more(BETWEEN)
    must, _ = expected(publishers.done, changes[-1:])
    old = {span.url for span in publishers.done if span.end_s < changes[-1].start_s}
    queued = queue_of(bus, "bob")
    assert len(must) > 0 and len(old) > CHANGES
    assert must - set(queued) == set()
    assert old & set(queued) == set()
    assert len(queued) == len(set(queued))
    assert bus.lanes.audit("bob") == []
    assert bus.main.audit() == []


def test_two_first_publishers_at_once_and_one_owns_the_topic(webs, bus, publisher, subscriber):
    start = threading.Barrier(2)
    answers: dict[int, list[int]] = {0: [], 1: []}

    def publish(n: int, token: str) -> None:
        for number in range(20):
            start.wait(PATIENCE_S)
            topic = "topic_" + "abcdefghijklmnopqrst"[number]
            response = webs[n].publish(token, topic, {"type": "noop", "url": "https://a.example/"})
            answers[n].append(response.status_code)

    threads = [
        threading.Thread(target=publish, args=(n, token))
        for n, token in enumerate([publisher, subscriber])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert [sorted(pair) for pair in zip(answers[0], answers[1], strict=True)] == [[204, 403]] * 20

"""Publishing by a thread: in order, in bulk, and nothing lost in silence."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
from collections import defaultdict
from pathlib import Path

import pytest

from routemaster.client import BackgroundPublisher, Client, Event, NotSent, Unavailable
from tests.clients.gateway import HANG_UP, LOSE, Gateway, Say
from tests.e2e.running import unique
from tests.integration.processes import eventually

ROOT = Path(__file__).resolve().parents[2]


def url(number: int) -> str:
    return f"https://pub.example/{number}"


def published(client: Client, topic: str) -> int:
    return sum(row["events"] for row in client.topics() if row["name"] == topic)


def sent(gateway: Gateway) -> dict[str, list[int]]:
    """Times of what was sent, by topic; each request once."""
    found: dict[str, list[int]] = defaultdict(list)
    keys = set()
    for seen in gateway.seen:
        if seen.path.startswith("/topics/") and seen.headers["Idempotency-Key"] not in keys:
            keys.add(seen.headers["Idempotency-Key"])
            found[seen.path] += [json.loads(line)["timestamp"] for line in seen.body.splitlines()]
    return found


def test_each_topics_order_is_kept_in_few_requests(behind, client, gateway, topic):
    other = unique("other")
    with BackgroundPublisher(behind) as publisher:
        for n in range(3000):
            publisher.updated(topic if n % 3 else other, url(n), t=n + 1)
    assert published(client, topic) == 2000 and published(client, other) == 1000
    assert all(times == sorted(times) for times in sent(gateway).values())
    assert len(gateway.seen) < 20


def test_all_kinds_arrive_with_the_time_of_the_call(client, receiver, topic):
    client.subscribe([topic], receiver.url, "uuid", timeout=0)
    with BackgroundPublisher(client) as publisher:
        publisher.created(topic, url(1), data={"a": 1})
        publisher.updated(topic, url(1), facet="f")
        publisher.deleted(topic, url(1), id=unique("id"))
        publisher.noop(topic, url(1), t=5)
    receiver.wait_for_events(4)
    types = [event["type"] for d in receiver.deliveries for event in d.events]
    assert sorted(types) == ["create", "delete", "noop", "update"]
    assert sorted(receiver.times)[0] == 5 and sorted(receiver.times)[1] > 1_700_000_000_000


def test_a_flush_returns_when_all_before_it_is_there(client, topic):
    with BackgroundPublisher(client, linger=60) as publisher:
        for n in range(10):
            publisher.updated(topic, url(n))
        publisher.flush(20)
        assert published(client, topic) == 10


def test_while_the_bus_is_away_events_wait_and_then_all_are_there_once(
    behind, client, gateway, topic
):
    gateway.in_turn(LOSE, HANG_UP, Say(503), Say(500), LOSE)
    with BackgroundPublisher(behind, linger=0) as publisher:
        for n in range(100):
            publisher.updated(topic, url(n), t=n + 1)
    assert published(client, topic) == 100
    [times] = sent(gateway).values()
    assert times == list(range(1, 101))


def test_a_full_queue_makes_the_caller_wait_and_then_says_so(behind, gateway, topic):
    gateway.script = lambda seen: Say(503)
    publisher = BackgroundPublisher(behind, max_queued=10, block=0.1, linger=0)
    for n in range(10):
        publisher.updated(topic, url(n))
    with pytest.raises(Unavailable, match="10 events wait already"):
        publisher.updated(topic, url(11))
    with pytest.raises(Unavailable, match="10 events still wait"):
        publisher.flush(0.05)
    gateway.in_turn()
    publisher.flush(20)
    publisher.updated(topic, url(11))
    publisher.close()


def test_a_waiting_caller_goes_on_when_there_is_room(behind, client, gateway, topic):
    gateway.gate.clear()
    with BackgroundPublisher(behind, max_queued=5, block=20, linger=0) as publisher:

        def publish() -> None:
            for n in range(50):
                publisher.updated(topic, url(n))

        caller = threading.Thread(target=publish)
        caller.start()
        eventually(lambda: len(gateway.seen) == 1 and publisher._queued == 5)
        assert caller.is_alive()
        gateway.gate.set()
        caller.join(20)
    assert published(client, topic) == 50


def test_what_the_bus_refuses_is_told_and_the_rest_goes_on(client, root, topic):
    mine = unique("mine")
    root.created(topic, url(0))
    lost: list[NotSent] = []
    big = Client(client.http.url, client.http._token, max_data_bytes=1000)
    with BackgroundPublisher(big, linger=1, on_loss=lost.append) as publisher:
        for n in range(1, 6):
            data = {"a": "x" * 100} if n in (2, 4) else {}
            publisher.publish(mine, Event("update", url(n), t=n, data=data))
    assert published(client, mine) == 3
    assert [event["timestamp"] for loss in lost for _, event in loss.events] == [2, 4]
    assert "MessagePack" in str(lost[0])


def test_what_is_lost_may_be_published_elsewhere(bus, client, root, topic):
    taken, mine = unique("taken"), topic
    Client(bus.web.url, root.add_token(unique("owner"))).created(taken, url(1))

    def publish_elsewhere(loss: NotSent) -> None:
        for _, event in loss.events:
            publisher.updated(mine, event["url"])

    with BackgroundPublisher(client, on_loss=publish_elsewhere) as publisher:
        publisher.updated(taken, url(1))
        publisher.flush(20)
        eventually(lambda: published(client, mine) == 1)


def test_another_clients_topic_is_said_at_the_next_flush(bus, client, root, topic):
    owner = Client(bus.web.url, root.add_token(unique("owner")))
    owner.created(topic, url(1))
    publisher = BackgroundPublisher(client)
    publisher.created(topic, url(2))
    with pytest.raises(NotSent, match="1 events were not sent: the topic belongs to") as caught:
        publisher.flush(20)
    assert caught.value.events[0][0] == topic
    assert caught.value.status == 403
    publisher.close()


def test_a_close_that_cannot_send_says_what_is_left(behind, gateway, topic):
    gateway.script = lambda seen: HANG_UP
    publisher = BackgroundPublisher(behind, linger=0)
    for n in range(7):
        publisher.updated(topic, url(n), t=n)
    with pytest.raises(NotSent, match="does not answer") as caught:
        publisher.close(0.3)
    assert caught.value.count == 7
    assert sorted(event["timestamp"] for _, event in caught.value.events) == list(range(7))
    with pytest.raises(Unavailable, match="closed"):
        publisher.updated(topic, url(8))
    publisher.close()


def test_a_bus_that_takes_less_at_once_is_given_less(behind, client, gateway, topic):
    def most_ten(seen):
        if seen.body.count(b"\n") < 10:
            return "pass"
        told = {"error": "no", "detail": {"field": "body", "rule": "must hold at most 10 events"}}
        return Say(413, {}, json.dumps(told).encode())

    gateway.script = most_ten
    with BackgroundPublisher(behind) as publisher:
        for n in range(95):
            publisher.updated(topic, url(n), t=n + 1)
    assert published(client, topic) == 95


def python(code: str, *words: str, stop: bool = False) -> subprocess.CompletedProcess[str]:
    head = "from routemaster.client import *\nimport sys, os\nurl, token, topic = sys.argv[1:4]\n"
    head += "publisher = BackgroundPublisher(Client(url, token), linger=60, exit_timeout=5)\n"
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", head + textwrap.dedent(code), *words],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
    )


PUBLISH = "for n in range({}): publisher.updated(topic, f'https://pub.example/{{n}}')\n"


def test_what_is_queued_goes_out_when_the_program_ends(bus, client, token, topic):
    done = python(PUBLISH.format(20), bus.web.url, token, topic)
    assert done.returncode == 0, done.stderr
    assert published(client, topic) == 20


def test_what_cannot_go_out_at_the_end_is_logged(gateway, token, topic):
    gateway.script = lambda seen: Say(503)
    code = PUBLISH.format(20) + "publisher._exit_timeout_s = 0.3\n"
    done = python(code, gateway.url, token, topic)
    assert "events were not sent count=20" in done.stderr


def test_a_child_after_a_fork_sends_its_own_and_the_parent_its_own(bus, client, token, topic):
    code = """
        import multiprocessing
        def child(n):
            publisher.updated(topic, f"https://pub.example/child/{n}")
        publisher.updated(topic, "https://pub.example/parent")
        fork = multiprocessing.get_context("fork")
        children = [fork.Process(target=child, args=(n,)) for n in range(3)]
        for each in children: each.start()
        for each in children: each.join()
        pid = os.fork()
        publisher.updated(topic, f"https://pub.example/{pid and 'parent' or 'child'}/after")
        if pid: os.waitpid(pid, 0)
    """
    done = python(code, bus.web.url, token, topic)
    assert done.returncode == 0, done.stderr
    assert published(client, topic) == 6


def test_ctrl_c_loses_nothing(bus, client, token, topic):
    code = PUBLISH.format(20) + f"os.kill(os.getpid(), {int(signal.SIGINT)})"
    done = python(code, bus.web.url, token, topic)
    assert "KeyboardInterrupt" in done.stderr
    assert published(client, topic) == 20


def test_many_threads_and_a_bad_line_lose_and_double_nothing(
    behind, client, gateway, receiver, topic
):
    client.subscribe([topic], receiver.url, "uuid", timeout=0, max=1000)
    dice = random.Random(7)
    acts = ["pass", LOSE, HANG_UP, Say(503), Say(429)]
    gateway.script = lambda seen: dice.choices(acts, [5, 2, 1, 1, 1])[0]

    def publish(thread: int) -> None:
        for n in range(300):
            publisher.updated(topic, url(thread), t=n)

    with BackgroundPublisher(behind, linger=0, max_queued=100, exit_timeout=30) as publisher:
        threads = [threading.Thread(target=publish, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    receiver.wait_for_events(1200)
    times = defaultdict(list)
    for delivery in receiver.deliveries:
        for event in delivery.events:
            times[event["url"]].append(event["t"])
    assert times == {url(thread): list(range(300)) for thread in range(4)}

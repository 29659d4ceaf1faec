"""Redis dies under those who wait to pull and those who follow a stream: nobody hangs."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from routemaster.bus import assemble
from routemaster.settings import Settings
from tests.busses import follow, give_token, token_of
from tests.conftest import ROOT_KEY
from tests.e2e.test_streams import Stream
from tests.integration.processes import eventually
from tests.web.calls import EVENT

ALICE = token_of("alice")


@pytest.fixture
def web(own_redis_server, web_process):
    url = own_redis_server.url
    env = {"ROUTEMASTER_ROOT_KEY": ROOT_KEY, "ROUTEMASTER_REDIS_URL": url}
    bus = assemble(Settings.from_env(env))
    give_token(bus, "alice")
    follow(bus, "alice", "orders", callback=None, uuid=None, timeout=0)
    bus.link.close()
    process = web_process(url, ROUTEMASTER_WEB_PROCESSES="1").start()
    process.publish(ALICE, "orders", EVENT).raise_for_status()
    return process


def take(web, wait_s: int) -> Any:
    return web.call("GET", f"/subscriber/batch?wait={wait_s}", ALICE, timeout=20)


def listens(server, channel: str) -> bool:
    with server.client() as redis:
        return bool(redis.pubsub_numsub(channel)[0][1])


def test_who_waits_is_told_and_may_wait_again(own_redis_server, web):
    batch = take(web, 0)
    path = f"/subscriber/batch/{batch.headers['webhook-id']}"
    assert web.call("DELETE", path, ALICE).status_code == 204
    channel = "rm:{0}:jobs:waiting:alice"
    for _ in range(2):
        answers: list[Any] = []
        waiting = threading.Thread(target=lambda into=answers: into.append(take(web, 20)))
        waiting.start()
        eventually(lambda: listens(own_redis_server, channel), web.log)
        own_redis_server.kill()
        waiting.join(10)
        assert [answer.status_code for answer in answers] == [503]
        assert answers[0].headers["Retry-After"]
        own_redis_server.restart()
        eventually(lambda: web.call("GET", "/pulse", ALICE).status_code == 204, web.log)
    # Nobody keeps house here: the room itself promotes what comes due.
    waiting = threading.Thread(target=lambda: answers.append(take(web, 20)))
    waiting.start()
    eventually(lambda: listens(own_redis_server, channel), web.log)
    web.publish(ALICE, "orders", EVENT).raise_for_status()
    waiting.join(10)
    assert answers[-1].status_code == 200
    assert "Traceback" not in web.log()


def test_a_stream_goes_on_after_redis_is_back_and_says_what_it_missed(own_redis_server, web):
    stream = Stream(web.port, ALICE, "orders").wait_until_live()
    web.publish(ALICE, "orders", EVENT).raise_for_status()
    assert stream.read()["id"] == "2"
    own_redis_server.kill()
    own_redis_server.restart()
    # Heard by nobody, or by the stream if it is quick: the numbers tell.
    eventually(lambda: web.publish(ALICE, "orders", EVENT).status_code == 204, web.log)
    eventually(lambda: listens(own_redis_server, "rm:{0}:topic:orders"), web.log)
    web.publish(ALICE, "orders", EVENT).raise_for_status()
    message = stream.read()
    if message.get("event") == "skipped":
        assert message["data"] == {"events": 1}
        assert stream.read()["id"] == "4"
    else:
        assert (message["id"], stream.read()["id"]) == ("3", "4")
    stream.close()
    assert "Traceback" not in web.log()


def test_a_stream_asked_for_without_redis_is_refused(own_redis_server, web):
    own_redis_server.kill()
    answer = web.call("GET", "/topics/orders/stream", ALICE)
    assert answer.status_code == 503
    own_redis_server.restart()
    eventually(lambda: web.call("GET", "/pulse", ALICE).status_code == 204, web.log)
    stream = Stream(web.port, ALICE, "orders").wait_until_live()
    stream.close()

"""Redis goes away in every way it can: publishers hear 503 at once, and nothing needs a restart."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from routemaster.bus import assemble
from routemaster.redis_server import find_servers
from routemaster.settings import Settings
from tests.busses import follow, give_token, token_of
from tests.conftest import ROOT_KEY
from tests.integration.processes import WebProcess, eventually
from tests.servers import RedisServer, free_port
from tests.web.calls import EVENT

ALICE = token_of("alice")


@pytest.fixture(scope="module")
def redis_server():
    server = RedisServer(find_servers()[0], appendonly=True).start()
    yield server
    server.close()


@pytest.fixture(scope="module")
def web(redis_server):
    env = {"ROUTEMASTER_ROOT_KEY": ROOT_KEY, "ROUTEMASTER_REDIS_URL": redis_server.url}
    bus = assemble(Settings.from_env(env))
    give_token(bus, "alice")
    follow(bus, "alice", "orders")
    bus.link.close()
    process = WebProcess(redis_server.url, ROUTEMASTER_WEB_PROCESSES="1").start()
    yield process
    process.close()


@pytest.fixture(autouse=True)
def survives(web) -> Iterator[None]:
    """Whatever happens to Redis, it is the same processes before and after, and they work."""
    workers = web.workers()
    assert publish(web).status_code == 204
    yield
    eventually(lambda: publish(web).status_code == 204, web.log)
    assert web.call("GET", "/pulse", ALICE).status_code == 204
    assert web.workers() == workers
    assert "Traceback" not in web.log()


def publish(web):
    return web.publish(ALICE, "orders", EVENT)


def queued(web) -> int:
    [row] = web.call("GET", "/subscribers", ALICE).json()
    return int(row["events"]["queued"])


def says_later(response, *reasons: str) -> None:
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) >= 1
    assert response.json()["detail"]["reason"] in reasons


def everything_says_later(web, *reasons: str) -> None:
    says_later(publish(web), *reasons)
    for path in ("/pulse", "/pulse/scaling", "/topics", "/subscribers"):
        says_later(web.call("GET", path, ALICE), *reasons)
    assert web.call("GET", "/health").status_code == 503
    assert web.call("GET", "/health/ping").status_code == 200


@contextmanager
def killed(server: RedisServer) -> Iterator[None]:
    server.kill()
    try:
        yield
    finally:
        server.start()


def test_down(web, redis_server):
    before = queued(web)
    with killed(redis_server):
        everything_says_later(web, "down")
    # The refused one did not come back from anywhere.
    eventually(lambda: web.call("GET", "/health").status_code == 200)
    assert queued(web) == before


def test_down_for_many_at_once(web, redis_server):
    answers: list[requests.Response] = []
    threads = [threading.Thread(target=lambda: answers.append(publish(web))) for _ in range(16)]
    with killed(redis_server):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(answers) == 16
    for answer in answers:
        says_later(answer, "down")


def test_frozen(web, redis_server):
    os.kill(redis_server.pid, signal.SIGSTOP)
    try:
        everything_says_later(web, "not answering")
    finally:
        os.kill(redis_server.pid, signal.SIGCONT)


def test_full(web, redis_server):
    with redis_server.client() as redis:
        redis.config_set("maxmemory", "1")
        try:
            says_later(publish(web), "full")
            says_later(web.call("GET", "/pulse", ALICE), "full")
            # Reading goes on, and so does what frees memory.
            assert web.call("GET", "/topics", ALICE).status_code == 200
            assert web.call("DELETE", "/subscriber/topics/orders", ALICE).status_code == 204
            assert web.call("DELETE", "/subscriber", ALICE).status_code == 204
        finally:
            redis.config_set("maxmemory", "0")
    body = {"topics": ["orders"], "callback": "https://sub.example/", "uuid": "u"}
    assert web.call("POST", "/subscription", ALICE, json=body).status_code == 204


def test_read_only(web, redis_server):
    with redis_server.client() as redis:
        redis.execute_command("REPLICAOF", "127.0.0.1", str(free_port()))
        try:
            says_later(publish(web), "read-only")
            says_later(web.call("GET", "/pulse", ALICE), "read-only")
        finally:
            redis.execute_command("REPLICAOF", "NO", "ONE")


def test_loading(web, redis_server):
    reply = b"-LOADING Redis is loading the dataset in memory\r\n"
    with killed(redis_server), answering(redis_server.port, reply):
        everything_says_later(web, "loading")


def test_something_that_is_no_redis(web, redis_server):
    with killed(redis_server), answering(redis_server.port, b"HTTP/1.1 400 Bad Request\r\n\r\n"):
        everything_says_later(web, "down")


def test_a_restart_between_two_publishes_goes_unnoticed(web, redis_server):
    redis_server.restart()
    assert [publish(web).status_code for _ in range(10)] == [204] * 10


@contextmanager
def answering(port: int, reply: bytes) -> Iterator[None]:
    """A server that says the same to whatever it hears."""
    listener = socket.create_server(("127.0.0.1", port))
    open_ones: list[socket.socket] = [listener]

    def serve(connection: socket.socket) -> None:
        try:
            while connection.recv(65536):
                connection.sendall(reply)
        except OSError:
            pass

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            open_ones.append(connection)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield
    finally:
        for each in list(open_ones):
            with_reset(each)
        thread.join(5)


def with_reset(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()

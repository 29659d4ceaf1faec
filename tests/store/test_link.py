"""Redis restarts, forgets, refuses and stays silent; what a caller of the link sees of it."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager

import pytest
import redis

from routemaster.errors import StoreUnavailable
from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Link
from routemaster.store.wake import WakeUps
from tests.proxy import Proxy
from tests.servers import RedisServer, free_port

TIMEOUT_S = 5
PUSH = scripts.load().queue_push
KEYS = ["index", "scheduled", "instant"]
MOST_TRIES = 2000


@pytest.fixture
def link(redis_server):
    made = Link(redis_server.socket_url, TIMEOUT_S)
    yield made
    made.close()


@pytest.fixture
def own_link(own_redis_server):
    made = Link(own_redis_server.socket_url, TIMEOUT_S)
    yield made
    made.close()


def push(link: Link, job: str = "job") -> int:
    done: int = link.run(PUSH, KEYS, [job, "", "wake"])
    return done


def reason(act, *args) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        act(*args)
    return caught.value.reason


@contextmanager
def at_the_same_time(act):
    """`act` in another thread; its end is awaited, its failure is expected."""

    def run() -> None:
        try:
            act()
        except redis.RedisError:
            pass

    thread = threading.Thread(target=run)
    thread.start()
    yield thread
    thread.join(30)


def reason_while(thread, act, *args) -> str | None:
    """The first refusal while the thread runs: when exactly it begins, nobody can say."""
    for _ in range(MOST_TRIES):
        try:
            act(*args)
        except StoreUnavailable as refused:
            return refused.reason
        if not thread.is_alive():
            return None
    return None


def test_a_script_that_redis_forgot(link):
    assert push(link, "a") == 1
    link.call("SCRIPT", "FLUSH")
    assert push(link, "b") == 1
    assert link.call("LRANGE", "instant", 0, -1) == [b"a", b"b"]


def test_a_restart_between_two_calls_goes_unnoticed(own_redis_server, own_link):
    assert push(own_link, "a") == 1
    own_redis_server.restart()
    assert push(own_link, "b") == 1
    own_redis_server.kill()
    own_redis_server.start()
    assert own_link.call("LRANGE", "instant", 0, -1) == [b"a", b"b"]


def test_down_and_up_again(own_redis_server, own_link):
    push(own_link, "a")
    own_redis_server.stop()
    for _ in range(3):
        assert reason(push, own_link) == "down"
    own_redis_server.start()
    assert push(own_link, "b") == 1


def test_nobody_listens():
    link = Link(f"redis://127.0.0.1:{free_port()}/0", TIMEOUT_S)
    assert reason(link.call, "PING") == "down"


def test_a_lost_reply_is_not_asked_for_again(redis_server):
    with Proxy(redis_server.port) as proxy:
        link = Link(proxy.url, TIMEOUT_S)
        link.call("PING")
        proxy.lose_reply(0)
        assert reason(link.call, "INCR", "count") == "down"
        assert proxy.exchanges == [["INCR"]]
        assert link.call("GET", "count") == b"1"
        proxy.lose_reply(0)
        assert reason(link.many, [("INCR", "count"), ("INCR", "count")]) == "down"
        assert link.call("GET", "count") == b"3"
        link.close()


# Python 3.12 warns of any fork while threads run; these wait in recv and hold no lock.
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_has_its_own_connection(link):
    mine = link.call("CLIENT", "ID")
    come, go = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(go, b"%d %d" % (link.call("CLIENT", "ID"), push(link)))
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    theirs, pushed = os.read(come, 100).split()
    os.close(come)
    os.close(go)
    assert int(theirs) != mine and pushed == b"1"
    assert link.call("CLIENT", "ID") == mine  # still open, and no reply of another in it
    assert push(link) == 0


def test_full(redis_server, link):
    with redis_server.client() as client:
        client.config_set("maxmemory", "1")
    assert reason(link.call, "SET", "a", "b") == "full"
    assert reason(link.run, scripts.load().token_add, ["r", "c", "t"], ["d", "r"]) == "full"
    assert push(link) == 1  # allow-oom
    assert link.call("EXISTS", "a", "r", "c", "t") == 0


def test_read_only(own_redis_server, own_link):
    with own_redis_server.client() as client:
        push(own_link, "a")
        client.replicaof("127.0.0.1", free_port())
        assert reason(push, own_link) == "read-only"
        assert reason(own_link.call, "SET", "a", "b") == "read-only"
        client.config_set("replica-serve-stale-data", "no")
        assert reason(own_link.call, "GET", "a") == "read-only"
        client.execute_command("REPLICAOF", "NO", "ONE")
    assert push(own_link, "b") == 1


def test_loading(own_redis_server, own_link):
    with own_redis_server.client() as client:
        client.execute_command("DEBUG", "POPULATE", 2000, "key", 1000)
        client.config_set("loading-process-events-interval-bytes", 1024)
        client.config_set("key-load-delay", 500)
        with at_the_same_time(lambda: client.execute_command("DEBUG", "RELOAD")) as thread:
            assert reason_while(thread, own_link.call, "GET", "a") == "loading"
    own_redis_server.kill()


def test_busy(own_redis_server, own_link):
    with own_redis_server.client() as client, own_redis_server.client() as other:
        client.config_set("busy-reply-threshold", 10)
        with at_the_same_time(lambda: client.eval("while true do end", 0)) as thread:
            assert reason_while(thread, own_link.call, "GET", "a") == "busy"
            other.script_kill()
    assert push(own_link) == 1


def test_silence(own_redis_server):
    link = Link(own_redis_server.socket_url, 0.3)
    link.call("PING")
    assert reason(link.call, "DEBUG", "SLEEP", "1") == "not answering"
    with own_redis_server.client() as client:
        client.ping()  # answered when the sleep is over
    assert link.call("ECHO", "mine") == b"mine"
    link.close()


@pytest.mark.parametrize("password", ["", "wrong"])
def test_a_wrong_password(redis_flavour, password):
    server = RedisServer(redis_flavour)
    server.start()
    try:
        with server.client() as client:
            client.config_set("requirepass", "right")
        at = f"127.0.0.1:{server.port}/0"
        link = Link(f"redis://:{password}@{at}" if password else f"redis://{at}", TIMEOUT_S)
        assert reason(link.call, "PING") == "refuses our credentials"
        right = Link(f"redis://:right@{at}", TIMEOUT_S)
        assert right.call("PING") in (b"PONG", "PONG")
        right.close()
    finally:
        server.close()


def test_an_error_reply_leaves_the_connection_in_order(link):
    mine = link.call("CLIENT", "ID")
    assert reason(link.call, "LPUSH").startswith("error: ")
    link.call("SET", "text", "x")
    commands = [("ECHO", "1"), ("LPUSH", "text", "y"), ("ECHO", "2")]
    assert reason(link.many, commands).startswith("error: WRONGTYPE")
    assert link.many([("ECHO", "3"), ("ECHO", "4")]) == [b"3", b"4"]
    assert link.many([("ECHO", "5")], atomic=True) == [b"5"]
    assert link.many([]) == []
    assert link.call("CLIENT", "ID") == mine


def test_an_error_within_a_transaction(link):
    link.call("SET", "text", "x")
    assert reason(link.many, [("LPUSH", "text", "y")], True).startswith("error: WRONGTYPE")


class Interrupted(BaseException):
    pass


def test_an_interrupted_exchange_is_forgotten(own_redis_server, own_link):
    own_link.call("PING")

    def interrupt(*_) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1))
        timer.start()
        with pytest.raises(Interrupted):
            own_link.many([("DEBUG", "SLEEP", "0.5"), ("ECHO", "theirs")])
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert own_link.call("ECHO", "mine") == b"mine"


def test_many_threads_at_once(link):
    wrong = []

    def ask(number: int) -> None:
        for turn in range(200):
            words = f"{number}-{turn}".encode()
            if link.call("ECHO", words) != words:
                wrong.append(words)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert wrong == []


def test_who_listens_may_try_as_often_as_it_takes(own_link, own_redis_server):
    """A worker tries five times a second, however long Redis is away."""
    wake_ups = WakeUps(own_link, Keys("rm"))
    own_redis_server.stop()
    for _ in range(200):
        assert reason(wake_ups.connect) == "down"
    own_redis_server.start()
    assert wake_ups.connect()
    wake_ups.close()

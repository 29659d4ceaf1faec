"""What the web process wants before it serves, and how it ends."""

from __future__ import annotations

import threading

import pytest

from routemaster.checks import MISCONFIGURED
from routemaster.redis_server import find_servers
from tests.conftest import ROOT_KEY
from tests.integration.processes import PATIENCE_S, eventually
from tests.servers import RedisServer, free_port
from tests.web.calls import EVENT

SMALL = {"ROUTEMASTER_WEB_PROCESSES": "1", "ROUTEMASTER_WEB_THREADS": "2"}


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_redis_that_throws_data_away_is_refused(web_process, policy):
    server = RedisServer(find_servers()[0], maxmemory_policy=policy).start()
    try:
        web = web_process(server.url, **SMALL).launch()
        assert web.wait() == MISCONFIGURED == 78
        assert f"maxmemory-policy is {policy}" in web.log()
        assert "config set maxmemory-policy noeviction" in web.log()
        assert "Traceback" not in web.log()
    finally:
        server.close()


def test_a_replica_is_refused(own_redis_server, web_process):
    with own_redis_server.client() as redis:
        redis.execute_command("REPLICAOF", "127.0.0.1", str(free_port()))
    web = web_process(own_redis_server.url, **SMALL).launch()
    assert web.wait() == MISCONFIGURED
    assert "replica" in web.log()


def test_without_an_append_only_file_it_warns_and_runs(redis_server, web_process):
    web = web_process(redis_server.url, **SMALL).start()
    assert "level=warning" in web.log() and "append-only file" in web.log()


def test_with_one_it_does_not_warn(own_redis_server, web_process):
    web = web_process(own_redis_server.url, **SMALL).start()
    assert "append-only file" not in web.log()
    assert "listening address=http://127.0.0.1:" in web.log()


def test_it_waits_for_a_redis_that_comes_later(web_process):
    server = RedisServer(find_servers()[0])
    try:
        web = web_process(server.url, **SMALL).launch()
        server.start()
        web.wait_until_up()
        assert web.call("GET", "/health").status_code == 200
    finally:
        server.close()


def test_wrong_settings_end_it_with_all_of_them_named(web_process):
    web = web_process("redis://127.0.0.1:1/0", ROUTEMASTER_WEB_THREADS="none", PORT="0").launch()
    assert web.wait() == 78
    assert "ROUTEMASTER_WEB_THREADS" in web.log() and "PORT" in web.log()


def test_declared_clients_come_and_go_with_the_environment(redis_server, web_process):
    old, new = "carol--0123456789abcdef", "dave--0123456789abcdef"
    web = web_process(redis_server.url, ROUTEMASTER_CLIENTS=old, **SMALL).start()
    made = web.call("POST", "/api_tokens", ROOT_KEY, json={"name": "eve"}).json()["token"]
    assert web.publish(old, "orders", EVENT).status_code == 204
    assert web.stop() == 0
    web = web_process(redis_server.url, ROUTEMASTER_CLIENTS=new, **SMALL).start()
    answers = [web.call("GET", "/topics", token).status_code for token in (old, new, made)]
    assert answers == [401, 200, 200]
    assert not [token for token in (old, new, made, ROOT_KEY) if token in web.log()]


def test_two_that_start_at_once_declare_the_same_clients(redis_server, web_process):
    tokens = ",".join(f"client-{n}--0123456789abcdef" for n in range(20))
    webs = [
        web_process(redis_server.url, ROUTEMASTER_CLIENTS=tokens, **SMALL).launch()
        for _ in range(2)
    ]
    for web in webs:
        web.wait_until_up()
        assert len(web.call("GET", "/api_tokens", ROOT_KEY).json()) == 20


def test_it_ends_when_asked_and_answers_what_it_has_begun(redis_server, web_process):
    token = "alice--0123456789abcdef"
    env = {"ROUTEMASTER_CLIENTS": token, "ROUTEMASTER_REDIS_TIMEOUT": "30", **SMALL}
    web = web_process(redis_server.url, **env).start()
    answers: list[int] = []

    def publish() -> None:
        answers.append(web.publish(token, "orders", EVENT, timeout=PATIENCE_S).status_code)

    asking = threading.Thread(target=publish)
    with redis_server.client() as redis:
        # The publish stands before Redis while the process is told to end.
        redis.execute_command("CLIENT", "PAUSE", "60000", "WRITE")
        asking.start()
        eventually(lambda: redis.info("clients")["blocked_clients"] >= 1)
        web.ask_to_end()
        redis.execute_command("CLIENT", "UNPAUSE")
    assert web.wait() == 0
    asking.join(PATIENCE_S)
    assert answers == [204]

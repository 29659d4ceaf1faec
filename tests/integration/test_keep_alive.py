"""Many connections that stay open share few threads, and none of them is forgotten."""

from __future__ import annotations

import http.client
import json
import os
import sys
import threading
from pathlib import Path

import pytest

from routemaster.settings import Settings
from tests.busses import give_token
from tests.conftest import ROOT_KEY
from tests.integration.processes import PATIENCE_S, eventually
from tests.web.calls import EVENT, basic

CONNECTIONS = 64
REQUESTS = 10
# By then the others have had a hundred times their share.
TOO_MANY = 100 * REQUESTS


@pytest.fixture
def web(redis_server, web_process):
    process = web_process(
        redis_server.url, ROUTEMASTER_WEB_PROCESSES="2", ROUTEMASTER_WEB_THREADS="8"
    )
    return process.start()


@pytest.fixture
def token(make_bus, redis_server) -> str:
    env = {"ROUTEMASTER_ROOT_KEY": ROOT_KEY, "ROUTEMASTER_REDIS_URL": redis_server.url}
    return give_token(make_bus(Settings.from_env(env)), "alice")


class Connections:
    """Each goes on publishing until all have made their share: nobody makes room for a slow one."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._headers = {"Authorization": basic(token), "Content-Type": "application/json"}
        self.counts = [0] * CONNECTIONS
        self.problems: list[object] = []
        self._ready = threading.Barrier(CONNECTIONS)
        self._all_done = threading.Event()

    def run(self) -> None:
        threads = [threading.Thread(target=self._run, args=(n,)) for n in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(2 * PATIENCE_S)

    def _run(self, n: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
        try:
            connection.connect()
            opened = connection.sock
            self._ready.wait(PATIENCE_S)
            while not self._all_done.is_set() and self.counts[n] < TOO_MANY:
                self._publish(connection)
                assert connection.sock is opened, "the server hung up"
                self.counts[n] += 1
                if min(self.counts) >= REQUESTS:
                    self._all_done.set()
        except Exception as error:
            self.problems.append(error)
            self._all_done.set()
        finally:
            connection.close()

    def _publish(self, connection: http.client.HTTPConnection) -> None:
        connection.request("POST", "/topics/orders", json.dumps(EVENT), self._headers)
        response = connection.getresponse()
        body = response.read()
        assert response.status == 204, body


def test_64_connections_all_make_progress(web, token):
    connections = Connections(web.port, token)
    connections.run()
    assert connections.problems == []
    assert min(connections.counts) >= REQUESTS
    assert max(connections.counts) < TOO_MANY


def test_idle_connections_hold_no_thread(web, token):
    # More of them than there are threads, each used once and then left open.
    idle = [
        http.client.HTTPConnection("127.0.0.1", web.port, timeout=PATIENCE_S) for _ in range(40)
    ]
    try:
        for connection in idle:
            connection.request("GET", "/health/ping")
            assert connection.getresponse().read()
        assert web.publish(token, "orders", EVENT).status_code == 204
        for connection in idle:
            connection.request("GET", "/health/ping")
            assert connection.getresponse().read()
    finally:
        for connection in idle:
            connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="cores are chosen on Linux only")
def test_each_process_has_a_core_of_its_own(web):
    ours = sorted(os.sched_getaffinity(0))
    wanted = sorted(ours[n % len(ours)] for n in range(2))
    eventually(lambda: sorted(cores(web)) == wanted, lambda: str(cores(web)))
    before = web.workers()
    os.kill(before[0], 9)
    eventually(lambda: len(set(web.workers()) - set(before)) == 1 and len(web.workers()) == 2)
    eventually(lambda: sorted(cores(web)) == wanted, lambda: str(cores(web)))


def cores(web) -> list[int]:
    found = []
    for pid in web.workers():
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("Cpus_allowed_list:") and line.split()[1].isdecimal():
                found.append(int(line.split()[1]))
    return found

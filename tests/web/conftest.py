from __future__ import annotations

from collections.abc import Callable

import pytest

from routemaster.bus import Bus
from routemaster.redis_server import find_servers
from routemaster.web import create_app
from tests.conftest import ROOT_KEY
from tests.servers import RedisServer
from tests.web.assembling import bus_maker
from tests.web.calls import Caller


@pytest.fixture
def redis_server(shared_servers) -> RedisServer:
    """One flavour is enough here: the scripts' own tests run on all of them."""
    server: RedisServer = shared_servers(find_servers()[0])
    server.reset()
    return server


@pytest.fixture
def make_bus():
    with bus_maker() as make:
        yield make


@pytest.fixture
def bus(make_bus: Callable[..., Bus], settings) -> Bus:
    return make_bus(settings)


@pytest.fixture
def app(bus):
    return create_app(bus)


@pytest.fixture
def nobody(app) -> Caller:
    return Caller(app.test_client())


@pytest.fixture
def root(app) -> Caller:
    return Caller(app.test_client(), ROOT_KEY)


@pytest.fixture
def client_named(bus, app):
    """client_named("alice") is a caller with a token of that name."""
    from tests.busses import give_token

    def make(name: str) -> Caller:
        return Caller(app.test_client(), give_token(bus, name))

    return make


@pytest.fixture
def alice(client_named) -> Caller:
    caller: Caller = client_named("alice")
    return caller


@pytest.fixture
def bob(client_named) -> Caller:
    caller: Caller = client_named("bob")
    return caller

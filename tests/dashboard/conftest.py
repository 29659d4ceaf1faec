from __future__ import annotations

from collections.abc import Callable

import pytest

from routemaster.bus import Bus
from routemaster.redis_server import find_servers
from routemaster.web import create_app
from tests.busses import give_token
from tests.conftest import ROOT_KEY
from tests.dashboard.visitor import Visitor
from tests.servers import RedisServer
from tests.web.assembling import bus_maker


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
def visitor(app) -> Visitor:
    return Visitor(app.test_client())


@pytest.fixture
def root(app) -> Visitor:
    signed_in = Visitor(app.test_client())
    assert signed_in.sign_in(ROOT_KEY).status_code == 303
    return signed_in


@pytest.fixture
def alice(bus, app) -> Visitor:
    signed_in = Visitor(app.test_client())
    assert signed_in.sign_in(give_token(bus, "alice")).status_code == 303
    return signed_in

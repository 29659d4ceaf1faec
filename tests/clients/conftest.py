from __future__ import annotations

from collections.abc import Iterator

import pytest

from routemaster.client import Client
from routemaster.redis_server import find_servers
from tests.clients.gateway import Gateway
from tests.conftest import ROOT_KEY
from tests.e2e.receiver import Receiver
from tests.e2e.running import RunningBus, unique
from tests.servers import RedisServer


@pytest.fixture(scope="session")
def bus() -> Iterator[RunningBus]:
    """What a client talks to, with a worker; one for all."""
    redis = RedisServer(find_servers()[0]).start()
    running = RunningBus(redis)
    try:
        yield running.start(workers=1)
        assert "Traceback" not in running.web.log() + running.workers[0].log()
    finally:
        running.close()
        redis.close()


@pytest.fixture
def gateway(bus: RunningBus) -> Iterator[Gateway]:
    started = Gateway(bus.web.port)
    yield started
    started.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    started = Receiver()
    yield started
    started.close()


@pytest.fixture
def root(bus: RunningBus) -> Iterator[Client]:
    with Client(bus.web.url, ROOT_KEY) as client:
        yield client


@pytest.fixture
def token(root: Client) -> str:
    return root.add_token(unique("client"))


@pytest.fixture
def client(bus: RunningBus, token: str) -> Iterator[Client]:
    with Client(bus.web.url, token) as made:
        yield made


@pytest.fixture
def behind(gateway: Gateway, token: str) -> Iterator[Client]:
    """The same client, through the gateway."""
    with Client(gateway.url, token, timeout=5, deadline=20) as made:
        yield made


@pytest.fixture
def topic() -> str:
    return unique("topic")

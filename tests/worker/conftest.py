from __future__ import annotations

from collections.abc import Iterator

import pytest

from routemaster.bus import Bus, assemble
from routemaster.redis_server import find_servers
from routemaster.worker.dispatcher import Dispatcher
from tests.busses import give_token
from tests.e2e.receiver import Receiver
from tests.servers import RedisServer
from tests.worker.turns import dispatching


@pytest.fixture
def redis_server(shared_servers) -> RedisServer:
    """One flavour is enough here: the scripts' own tests run on all of them."""
    server: RedisServer = shared_servers(find_servers()[0])
    server.reset()
    return server


@pytest.fixture
def bus(settings) -> Iterator[Bus]:
    made = assemble(settings)
    give_token(made, "publisher")
    yield made
    made.link.close()


@pytest.fixture
def dispatcher(settings) -> Iterator[Dispatcher]:
    with dispatching(settings) as made:
        yield made


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    started = Receiver()
    yield started
    started.close()

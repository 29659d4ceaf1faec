from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from routemaster.redis_server import find_servers
from tests.e2e.receiver import Receiver
from tests.e2e.running import RunningBus, unique
from tests.servers import RedisServer

# One flavour is enough here: the scripts' own tests run on all of them.


@pytest.fixture(scope="session")
def bus() -> Iterator[RunningBus]:
    """One for all: starting processes takes longer than most tests. Nobody harms it."""
    redis = RedisServer(find_servers()[0]).start()
    running = RunningBus(redis)
    try:
        yield running.start(workers=2)
        for worker in running.workers:
            assert not worker.has_ended, worker.log()
            assert "Traceback" not in worker.log()
            assert "audit found" not in worker.log()
    finally:
        running.close()
        redis.close()


@pytest.fixture(scope="module")
def harmed_bus() -> Iterator[RunningBus]:
    """Without workers, and with a Redis that keeps what it was told: for tests that kill."""
    redis = RedisServer(find_servers()[0], appendonly=True).start()
    running = RunningBus(redis)
    try:
        yield running.start()
    finally:
        running.close()
        redis.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    started = Receiver()
    yield started
    started.close()


@pytest.fixture
def make_receiver() -> Iterator[Callable[[], Receiver]]:
    made: list[Receiver] = []

    def make() -> Receiver:
        made.append(Receiver())
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def topic() -> str:
    return unique("topic")

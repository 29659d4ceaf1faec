from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest
from selenium.webdriver import Chrome

from routemaster.bus import Bus
from routemaster.redis_server import find_servers
from routemaster.web import create_app
from tests.busses import give_token
from tests.conftest import ROOT_KEY
from tests.dashboard import browser
from tests.dashboard.person import Person
from tests.dashboard.visitor import Visitor
from tests.e2e.receiver import Receiver
from tests.e2e.running import RunningBus, unique
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


# For the tests in a real browser: one browser and one bus for all of them.


@pytest.fixture(scope="session")
def chrome() -> Iterator[Chrome]:
    if not browser.find():
        why = "needs chromium and chromedriver (Debian: apt install chromium chromium-driver)"
        absent(why)
    with browser.started() as driver:
        yield driver


@pytest.fixture(scope="session")
def running() -> Iterator[RunningBus]:
    redis = RedisServer(find_servers()[0], appendonly=True, appendfsync="everysec").start()
    started = RunningBus(redis, MAX_BACKOFF_MS="600000", ROUTEMASTER_REDIS_TIMEOUT="5")
    try:
        yield started.start(workers=1)
        assert "Traceback" not in started.web.log(), started.web.log()
    finally:
        started.close()
        redis.close()


@pytest.fixture
def person(chrome, running) -> Iterator[Person]:
    """Somebody who is not signed in yet. Leaves no complaint of the browser behind."""
    with running.redis.client() as redis:
        redis.delete("rm:{0}:sign_ins")
    chrome.delete_all_cookies()
    browser.resize(chrome, browser.WIDE)
    browser.prefer(chrome, "light")
    chrome.get("about:blank")
    made = Person(chrome, running.web.url)
    made.complaints()
    yield made
    assert made.complaints() == []


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    started = Receiver()
    yield started
    started.close()


@pytest.fixture
def topic() -> str:
    return unique("topic")


def absent(why: str) -> NoReturn:
    """Skipped where a developer has not installed something; never where it is proved to work."""
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)

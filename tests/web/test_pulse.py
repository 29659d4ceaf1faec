from __future__ import annotations

from dataclasses import replace

import pytest

from routemaster.web import create_app, pulse
from tests.servers import free_port
from tests.web.calls import Caller
from tests.web.clocks import SetClock


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def bus(make_bus, settings, clock):
    return make_bus(settings, clock)


@pytest.fixture
def lonely(make_bus, settings) -> Caller:
    """Its Redis is not there."""
    gone = replace(settings, redis_url=f"redis://127.0.0.1:{free_port()}/0")
    return Caller(create_app(make_bus(gone)).test_client(), "any")


def test_alive(alice, root):
    assert alice.get("/pulse").status_code == 204
    assert root.get("/pulse").status_code == 204


def test_a_full_redis_is_no_pulse(alice, redis_server):
    assert alice.get("/topics").status_code == 200
    with redis_server.client() as redis:
        redis.config_set("maxmemory", "1")
        response = alice.get("/pulse")
        redis.config_set("maxmemory", "0")
    assert response.status_code == 503
    assert response.get_json()["detail"] == {"reason": "full"}


def test_scaling_says_how_many_jobs_are_due(alice, bus, clock):
    for n in range(pulse.MANY_JOBS - 1):
        bus.main.push(b"job %d" % n)
    response = alice.get("/pulse/scaling")
    assert (response.status_code, response.headers["Routemaster-Jobs-Due"]) == (204, "99")
    assert clock.slept_s == []
    bus.main.push(b"one more")
    assert alice.get("/pulse/scaling").headers["Routemaster-Jobs-Due"] == "100"
    assert clock.slept_s == [1.0]


def test_one_request_at_most_waits(alice, bus, clock):
    for n in range(pulse.MANY_JOBS):
        bus.main.push(b"job %d" % n)
    second = []

    def ask_meanwhile(seconds):
        clock.slept_s.append(seconds)
        second.append(alice.get("/pulse/scaling"))

    clock.sleep = ask_meanwhile
    alice.get("/pulse/scaling")
    assert [response.status_code for response in second] == [204]
    assert clock.slept_s == [1.0]
    alice.get("/pulse/scaling")  # and the next one waits again
    assert clock.slept_s == [1.0, 1.0]


def test_health(nobody):
    assert nobody.get("/health").get_json() == {"status": "ok", "redis": "ok"}
    assert nobody.get("/health/ping").get_json() == {"status": "ok"}


def test_health_without_redis(lonely):
    response = lonely.get("/health")
    assert response.status_code == 503
    assert response.get_json() == {"status": "unavailable", "redis": "down"}
    assert lonely.get("/health/ping").status_code == 200


@pytest.mark.parametrize("path", ["/topics", "/subscribers", "/api_tokens", "/pulse"])
def test_without_redis_everything_is_for_later(lonely, path, caplog):
    response = lonely.get(path)
    assert response.status_code == 503
    assert int(response.headers["Retry-After"]) >= 1
    assert response.get_json()["detail"] == {"reason": "down"}
    assert "store unavailable reason=down" in caplog.text

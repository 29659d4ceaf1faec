from __future__ import annotations

from dataclasses import replace

import pytest

from routemaster import checks
from tests.servers import free_port
from tests.web.assembling import bus_maker
from tests.web.clocks import SetClock


@pytest.fixture
def make_bus():
    with bus_maker() as make:
        yield make


@pytest.fixture
def bus(make_bus, settings):
    return make_bus(settings)


def test_a_fit_redis(bus, redis_server):
    with redis_server.client() as redis:
        redis.config_set("appendonly", "yes")
        try:
            assert checks.inspect(bus) == ([], [])
        finally:
            redis.config_set("appendonly", "no")


def test_no_append_only_file_is_worth_a_warning(bus, caplog):
    problems, [warning] = checks.inspect(bus)
    assert problems == []
    assert "append-only" in warning and "config set appendonly yes" in warning
    checks.wait_for_redis(bus)
    assert warning in caplog.text


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random", "volatile-lru"])
def test_eviction_is_refused(bus, redis_server, policy, caplog):
    with redis_server.client() as redis:
        redis.config_set("maxmemory-policy", policy)
        try:
            with pytest.raises(SystemExit) as ended:
                checks.wait_for_redis(bus)
        finally:
            redis.config_set("maxmemory-policy", "noeviction")
    assert ended.value.code == 78
    assert policy in caplog.text


@pytest.mark.parametrize(
    ("version", "is_old"), [("6.2.14", True), ("7.0.0", False), ("10.1", False)]
)
def test_an_old_redis_is_refused(bus, monkeypatch, version, is_old):
    info = f"redis_version:{version}\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n"
    monkeypatch.setattr(type(bus.link), "call", lambda *_: info.encode())  # no such server here
    problems, warnings = checks.inspect(bus)
    assert [f"Redis {version} is too old" in problem for problem in problems] == [True] * is_old
    assert warnings == []


def test_a_redis_that_does_not_come_ends_the_process(make_bus, settings, caplog):
    clock = SetClock()
    gone = replace(settings, redis_url=f"redis://127.0.0.1:{free_port()}/0")
    with pytest.raises(SystemExit) as ended:
        checks.wait_for_redis(make_bus(gone, clock))
    assert ended.value.code == 69
    assert "redis unavailable reason=down" in caplog.text
    assert sum(clock.slept_s) >= checks.WAIT_S


def test_info_is_read_line_by_line():
    text = b"# Server\r\nredis_version:7.2.4\r\nos:Linux:x\r\n\r\nrole:master\r\n"
    assert checks.parse_info(text) == {
        "redis_version": "7.2.4", "os": "Linux:x", "role": "master",
    }  # fmt: skip

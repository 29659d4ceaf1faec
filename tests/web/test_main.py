from __future__ import annotations

import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
from gunicorn.config import Config

from routemaster.store import link
from routemaster.web import __main__ as main


@pytest.mark.parametrize(
    ("bind", "address"),
    [
        ("127.0.0.1", ("127.0.0.1", 17890)),
        ("::1", ("::1", 17890)),
        ("localhost", ("localhost", 17890)),
    ],
)
def test_gunicorn_understands_every_address(settings, bind, address):
    config = Config()
    for name, value in main.options(replace(settings, bind=bind)).items():
        config.set(name, value)
    assert config.address == [address]


def test_redis_gets_less_than_a_second(settings):
    # What a publisher waits at worst when Redis hangs: once to connect, once for an answer.
    assert settings.redis_timeout_s * (link.CONNECT_SHARE + link.READ_SHARE) < 1


def test_a_new_process_takes_the_core_of_the_one_that_died(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 5})
    server = SimpleNamespace(WORKERS={})
    for pid in range(3):
        choose(server, pid)
    assert sorted(cores(server)) == [0, 1, 5]
    for died in (1, 2, 0):
        core = server.WORKERS.pop(died).core
        choose(server, died)
        assert server.WORKERS[died].core == core


def test_more_processes_than_cores_share_them_evenly(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2, 3})
    server = SimpleNamespace(WORKERS={})
    for pid in range(4):
        choose(server, pid)
    assert sorted(cores(server)) == [2, 2, 3, 3]


def choose(server, pid):
    worker = SimpleNamespace()
    main.choose_core(server, worker)
    server.WORKERS[pid] = worker


def cores(server):
    return [worker.core for worker in server.WORKERS.values()]

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace

import pytest

from routemaster.domain.job import Job
from routemaster.errors import StoreUnavailable
from routemaster.jobs import intervals_ms
from routemaster.store.jobs import Snapshot
from routemaster.worker.aux import LEASE_MS, RUN_MS, AuxConsumer, consume
from routemaster.worker.tickers import Tickers
from tests.conftest import ROOT_KEY
from tests.integration.processes import CHECKOUT, eventually
from tests.proxy import Proxy
from tests.web.clocks import SetClock

HELLO = Job("hello").dump()
JOIN_S = 30


@pytest.fixture
def stop():
    return threading.Event()


@pytest.fixture
def ran():
    return []


@pytest.fixture
def consumer_of(ran, stop):
    def make(bus, **works) -> AuxConsumer:
        return AuxConsumer(bus, "w", {"hello": lambda _: ran.append("hello"), **works}, stop)

    return make


def test_a_job_is_run_and_gone(bus, consumer_of, ran):
    bus.aux.push(HELLO)
    bus.aux.push(Job("hello", ("again",)).dump())
    consumer = consumer_of(bus)
    consumer.step()
    assert ran == ["hello"]
    assert len(bus.aux.snapshot().instant) == 1
    consumer.step()
    consumer.step()
    assert (ran, bus.aux.snapshot()) == (["hello", "hello"], Snapshot())


def fails(_):
    raise ZeroDivisionError("boom")


@pytest.mark.parametrize(
    ("job", "logged"),
    [
        (Job("fails").dump(), "ZeroDivisionError: boom"),
        (Job("stranger").dump(), "unknown job name='stranger'"),
        (b"\xc1 no MessagePack", "job failed job="),
    ],
)
def test_a_job_that_cannot_be_done_is_reported_and_gone(bus, consumer_of, ran, caplog, job, logged):
    bus.aux.push(job)
    bus.aux.push(HELLO)
    consumer = consumer_of(bus, fails=fails)
    consumer.step()
    consumer.step()
    assert logged in caplog.text
    assert (ran, bus.aux.snapshot()) == (["hello"], Snapshot())


def test_a_job_hears_of_the_end_and_of_its_time_limit(make_bus, settings, consumer_of, stop):
    clock = SetClock()
    bus = make_bus(settings, clock)
    heard = []

    def long_one(is_over):
        heard.append(is_over())
        clock.at_ms += RUN_MS
        heard.append(is_over())

    def stopped(is_over):
        heard.append(is_over())
        stop.set()
        heard.append(is_over())

    consumer = consumer_of(bus, long_one=long_one, stopped=stopped)
    for name in ("long_one", "stopped"):
        bus.aux.push(Job(name).dump())
        consumer.step()
    assert heard == [False, True, False, True]


@pytest.mark.parametrize("lost", [0, 1], ids=["take", "ack"])
def test_a_lost_reply_does_not_lose_or_repeat_the_job(
    make_bus, settings, redis_server, consumer_of, ran, lost
):
    with Proxy(redis_server.port) as proxy:
        bus = make_bus(replace(settings, redis_url=proxy.url))
        consumer = consumer_of(bus)
        consumer.step()  # the scripts are loaded
        bus.aux.push(HELLO)
        proxy.lose_reply(lost)
        with pytest.raises(StoreUnavailable):
            consumer.step()
        assert proxy.has_lost
        proxy.watch()
        consumer.step()
        assert (ran, bus.aux.snapshot()) == (["hello"], Snapshot())


def test_a_redis_that_went_away_under_a_job(make_bus, settings, own_redis_server, consumer_of):
    bus = make_bus(replace(settings, redis_url=own_redis_server.socket_url))
    bus.aux.push(HELLO)
    consumer = consumer_of(bus, hello=lambda _: own_redis_server.stop())
    with pytest.raises(StoreUnavailable):
        consumer.step()
    own_redis_server.start()
    consumer.step()
    assert bus.aux.snapshot() == Snapshot()


def test_tickers_of_many_workers_mean_the_same_moment(bus):
    for now_ms in (20_000, 21_500, 24_999):
        assert Tickers(bus, {"a": 5000, "b": 60_000}).step(now_ms) == 25_000
    assert bus.aux.snapshot().scheduled == {
        Job("a").dump(): 25_000, Job("b").dump(): 60_000,
    }  # fmt: skip
    assert Tickers(bus, {"a": 5000}).step(25_000) == 30_000
    assert bus.aux.snapshot().scheduled[Job("a").dump()] == 25_000  # has not run yet


def test_only_who_has_somewhere_to_report_to_monitors(settings):
    assert intervals_ms(settings).keys() == {"autodrop", "series", "export"}
    quiet = replace(settings, dashboard=False, export_url=None)
    assert intervals_ms(quiet).keys() == {"autodrop"}
    reporting = replace(settings, metric_adapters=("print",), monitor_interval_s=0.25)
    assert intervals_ms(reporting)["monitor"] == 250


@contextmanager
def consuming(consumer, tickers, stop):
    thread = threading.Thread(target=consume, args=(consumer, tickers, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(JOIN_S)
    assert not thread.is_alive()


def test_the_thread_ticks_and_runs_until_it_is_stopped(bus, consumer_of, ran, stop):
    with consuming(consumer_of(bus), Tickers(bus, {"hello": 20}), stop):
        eventually(lambda: len(ran) >= 3)


def test_the_thread_survives_an_outage_of_redis(
    make_bus, settings, own_redis_server, consumer_of, ran, stop, caplog
):
    own_redis_server.stop()
    bus = make_bus(replace(settings, redis_url=own_redis_server.socket_url))
    with consuming(consumer_of(bus), Tickers(bus, {"hello": 20}), stop):
        eventually(lambda: "store unavailable reason=down" in caplog.text)
        own_redis_server.start()
        eventually(lambda: ran)


def test_the_worker_process_reports_and_ends(settings, tmp_path):
    env = {
        "PYTHONPATH": str(CHECKOUT),
        "ROUTEMASTER_ROOT_KEY": ROOT_KEY,
        "ROUTEMASTER_REDIS_URL": str(settings.redis_url),
        "ROUTEMASTER_METRIC_ADAPTERS": "print",
        "ROUTEMASTER_MONITOR_INTERVAL": "0.1",
    }
    output = tmp_path / "output"
    with output.open("w") as file:
        worker = subprocess.Popen(
            [sys.executable, "-m", "routemaster.worker"],
            cwd=tmp_path, env=env, stdout=file, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        eventually(lambda: "gauge name=workers value=1\n" in output.read_text(), output.read_text)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(JOIN_S) == 0
    finally:
        worker.kill()
        worker.wait(JOIN_S)
    assert "Traceback" not in output.read_text()


DEADLY = """
import os, signal, sys, threading
from routemaster.bus import assemble
from routemaster.settings import Settings
from routemaster.worker.aux import AuxConsumer
bus = assemble(Settings.from_env(os.environ))
works = {"deadly": lambda over: os.kill(os.getpid(), signal.SIGKILL), "good": lambda over: None}
AuxConsumer(bus, f"w{os.getpid()}", works, threading.Event()).step()
"""


def test_a_job_that_kills_its_workers_is_set_aside_and_stops_nobody(bus):
    deadly = Job("deadly").dump()
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT),
           "ROUTEMASTER_ROOT_KEY": "k",
           "ROUTEMASTER_REDIS_URL": bus.settings.redis_url}  # fmt: skip
    bus.aux.push(deadly)
    for death in (1, 2, 3):
        ended = subprocess.run([sys.executable, "-c", DEADLY], env=env)
        assert ended.returncode == -signal.SIGKILL
        later_ms = bus.clock.now_ms() + LEASE_MS + 1000
        assert bus.aux.scrub(100, 3, later_ms) == ((0, 1) if death == 3 else (1, 0))
    bus.aux.push(Job("good").dump())
    assert subprocess.run([sys.executable, "-c", DEADLY], env=env).returncode == 0
    [aside] = bus.aux.quarantined()
    assert aside.job == deadly and "expired 3 times" in aside.reason
    assert not bus.aux.push(deadly)  # the tickers do not bring it back by themselves
    assert bus.aux.snapshot().index == {deadly: b"q"}

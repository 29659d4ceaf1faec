"""A bus under load with a failing subscriber: its export says what the subscribers saw."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from itertools import cycle

import pytest

from routemaster.bus import assemble
from routemaster.export.exporter import Exporter
from routemaster.export.folder import Folder
from routemaster.redis_server import find_servers
from routemaster.settings import Settings
from tests.conftest import ROOT_KEY
from tests.e2e.receiver import Answer
from tests.e2e.running import RunningBus, events
from tests.export.drained import rows
from tests.export.test_snapshots import increase
from tests.integration.processes import CHECKOUT, eventually
from tests.servers import RedisServer

EVENTS, BULK = 300, 10


@pytest.fixture
def env(tmp_path):
    return {
        "ROUTEMASTER_EXPORT_URL": f"file://{tmp_path}/export",
        "ROUTEMASTER_EXPORT_INTERVAL": "1",
        "MAX_BACKOFF_MS": "100",
    }


@pytest.fixture
def running(env):
    redis = RedisServer(find_servers()[0]).start()
    bus = RunningBus(redis, **env)
    try:
        yield bus.start(workers=2)
    finally:
        bus.close()
        redis.close()


def follower(redis, env, folder):
    """`routemaster export --follow` beside the workers, who export too."""
    known = {"ROUTEMASTER_ROOT_KEY": ROOT_KEY, "ROUTEMASTER_REDIS_URL": redis.url, **env}
    return subprocess.Popen(
        [sys.executable, "-m", "routemaster.cli", "export", "--follow"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT), **known},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_the_export_says_what_the_subscribers_saw(running, make_receiver, env, tmp_path):
    good, bad, away = make_receiver(), make_receiver(), make_receiver()
    answers = cycle([Answer(500), Answer(), Answer(429, {"Retry-After": "1"}), Answer()])
    bad.script = lambda delivery: next(answers)
    away.script = lambda delivery: Answer(410)
    names = {}
    for receiver, size in ((good, 7), (bad, 30), (away, 50)):
        client = running.client()
        client.subscribe(receiver, "orders", max=size)
        names[client.name] = receiver
    shop = running.client("shop")
    killed = follower(running.redis, env, tmp_path)
    for first in range(1, EVENTS + 1, BULK):
        shop.publish("orders", *events(first, first + BULK - 1))
        if first == 1 + EVENTS // 2:
            assert "exported " in killed.stderr.readline() + killed.stderr.readline()
            killed.send_signal(signal.SIGKILL)
            killed.wait(30)
            killed.stderr.close()
    good.wait_for_events(EVENTS)
    bad.wait_for(lambda: {t for d in bad.deliveries for t in d.times} >= set(range(1, EVENTS + 1)))
    eventually(lambda: running.web.call("GET", "/pulse", ROOT_KEY).status_code == 204, str)

    settings = Settings.from_env(
        {"ROUTEMASTER_ROOT_KEY": ROOT_KEY, "ROUTEMASTER_REDIS_URL": running.redis.url, **env}
    )
    bus, folder = assemble(settings), Folder.of(env["ROUTEMASTER_EXPORT_URL"])
    eventually(lambda: not settled(bus, names), lambda: str(settled(bus, names)))
    Exporter(bus).turn()
    found = rows(folder, "attempts")
    for name, receiver in names.items():
        mine = [row for row in found if row["subscriber"] == name]
        seen = Counter(
            (d.bid, d.attempt, len(d.events), d.sequence[0]) for d in receiver.deliveries
        )
        assert seen == Counter(
            (r["batch"], r["attempt"], r["events"], r["first_seq"]) for r in mine
        )
        sent = increase(folder, "events.delivered", subscriber=name)
        assert sent == sum(row["events"] for row in mine if row["outcome"] == "delivered")
    by_status = Counter((row["outcome"], row["http_status"]) for row in found)
    assert by_status["gone", 410] == len(away.deliveries) > 0
    assert by_status.keys() == {
        ("delivered", 200), ("failed", 500), ("throttled", 429), ("gone", 410)
    }  # fmt: skip
    assert increase(folder, "events.published", topic="orders") == EVENTS
    assert {row["subscriber"] for row in rows(folder, "health")} >= names.keys()
    states = {row["subscriber"]: row["state"] for row in rows(folder, "health")}
    assert Counter(states[name] for name in names) == {"active": 2, "disabled": 1}
    bus.link.close()


def settled(bus, names) -> list[str]:
    """Who still has events under way; a subscriber that is gone keeps its own."""
    summaries = bus.subscribers.summaries(sorted(names))
    return [one.name for one in summaries if one.queued and one.state == "active"]

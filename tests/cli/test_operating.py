"""The operator's commands, as processes, beside a real Redis."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from routemaster.bus import assemble
from routemaster.cli import COMMANDS
from routemaster.domain.job import Job
from routemaster.redis_server import find_servers
from tests.busses import event, follow, give_token, publish
from tests.conftest import ROOT_KEY
from tests.servers import RedisServer, free_port

CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def redis_server(shared_servers) -> RedisServer:
    server: RedisServer = shared_servers(find_servers()[0])
    server.reset()
    return server


@pytest.fixture
def bus(settings):
    made = assemble(settings)
    give_token(made, "shop")
    follow(made, "mailer", "orders", max=2)
    publish(made, "shop", "orders", json.dumps([event(n) for n in range(5)]).encode())
    yield made
    made.link.close()


@pytest.fixture
def run(redis_server, tmp_path):
    def run(*words: str, status: int = 0, **env: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "routemaster.cli", *words],
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT), "COLUMNS": "200",
                "ROUTEMASTER_ROOT_KEY": ROOT_KEY,
                "ROUTEMASTER_REDIS_URL": redis_server.socket_url, **env,
            },
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    return run


def state(bus) -> tuple[str, int]:
    [one] = bus.subscribers.summaries(["mailer"])
    return one.state, one.queued


def test_every_command_is_listed_and_explains_itself(run):
    listed = " ".join(run("--help").split())  # however it is wrapped
    for name, line in COMMANDS.items():
        assert f" {name} {line}" in listed
    for name in COMMANDS:
        assert run(name, "--help").startswith("Usage: ")
    assert "No such command 'frobnicate'" in run("frobnicate", status=2)


def test_check_says_what_to_do(run, bus, redis_server):
    said = run("check")
    assert "no worker is alive" in said and "run `routemaster worker`" in said
    with redis_server.client() as redis:
        redis.config_set("maxmemory-policy", "allkeys-lru")
        try:
            found = json.loads(run("check", "--json", status=1))
        finally:
            redis.config_set("maxmemory-policy", "noeviction")
    [problem] = [row for row in found if row["level"] == "problem"]
    assert problem["name"] == "eviction" and "noeviction" in problem["advice"]


def test_without_redis_a_command_says_where_to_look(run):
    nowhere = f"redis://127.0.0.1:{free_port()}/0"
    said = run("status", status=1, ROUTEMASTER_REDIS_URL=nowhere)
    assert said.startswith("Error: Redis is down.") and "ROUTEMASTER_REDIS_URL" in said


def test_config_masks_secrets(run):
    said = run("config", ROUTEMASTER_CLIENTS="shop--sesame-sesame")
    assert ROOT_KEY not in said and "sesame" not in said and "shop--***" in said
    shown = json.loads(run("config", "--json"))
    assert shown["ROUTEMASTER_ROOT_KEY"] == "***" and shown["PORT"] == 17890


def test_bad_settings_are_named(run):
    assert "PORT" in run("config", status=78, PORT="many")


def test_status_is_one_screen(run, bus):
    said = run("status")
    assert "5 events in 3 batches" in said and "mailer" in said
    rows = json.loads(run("status", "--json"))
    assert {"name": "events.queued", "kind": "gauge", "value": 5, "subscriber": "mailer"} in rows


@pytest.mark.parametrize(
    ("verb", "after"),
    [("pause", ("paused", 5)), ("resume", ("active", 5)), ("replay", ("active", 5)),
     ("drop", ("active", 0))],
)  # fmt: skip
def test_changes_are_counted_first(run, bus, verb, after):
    if verb in ("resume", "replay"):
        bus.subscribers.set_state("mailer", "disabled")
    before = state(bus)
    counted = "holds 5 events in 3 batches, in 1 lanes"
    assert counted in run(verb, "mailer", "--dry-run")
    assert "say --yes" in run(verb, "mailer", status=2)
    assert state(bus) == before
    assert counted in run(verb, "mailer", "--yes")
    assert state(bus) == after
    assert "nobody has no subscription" in run(verb, "nobody", "--yes", status=1)


def test_what_an_operator_drops_is_recorded(run, bus):
    run("drop", "mailer", "--yes", "--lane", "0")
    rows = [(drop.first_seq, drop.last_seq, drop.reason) for drop in bus.lanes.drops("mailer")]
    assert rows == [(1, 5, "operator")]
    assert "nothing queued in lane" in run("drop", "mailer", "--yes", "--lane", "f:x", status=1)


def test_replay_brings_forward_what_waits(run, bus):
    [lease] = bus.main.take("w", "l", 60_000, 1).leases
    bus.main.nack(lease.job, lease.fence, 3_600_000)
    assert bus.main.take("w", "l2", 60_000, 1).leases == []
    run("replay", "mailer", "--yes")
    assert len(bus.main.take("w", "l3", 60_000, 1).leases) == 1


def test_drain_waits_for_active_subscribers_only(run, bus):
    assert "5 events are left" in run("drain", "--timeout", "0.1", status=1)
    bus.subscribers.set_state("mailer", "paused")
    assert "drained" in run("drain")


def test_audit_repairs_and_says_so(run, bus):
    assert "nothing to repair" in run("audit")
    bus.link.call("HSET", bus.keys.event_gauges, "mailer", 7)
    assert "repaired" in run("audit", status=1)
    assert state(bus) == ("active", 5)
    assert json.loads(run("audit", "--json")) == []


def test_quarantine_shows_what_was_set_aside_and_releases_it(run, bus):
    assert run("quarantine") == "nothing is in quarantine\n"
    bus.aux.push(Job("autodrop").dump())
    now_ms = bus.clock.now_ms()
    for queue in (bus.main, bus.aux):
        queue.take("w1", "l", 100, 1)
        assert queue.scrub(100, 1, now_ms + 60_000) == (0, 1)
    shown = run("quarantine")
    for words in ("deliver mailer 0", "autodrop", "expired 1 times, last with worker w1"):
        assert words in shown
    rows = json.loads(run("quarantine", "--json"))
    assert [(row["queue"], row["job"]) for row in rows] == [
        ("main", "deliver mailer 0"), ("aux", "autodrop"),
    ]  # fmt: skip
    assert "released 2" in run("quarantine", "--release")
    assert [len(queue.take("w2", "l", 100, 1).leases) for queue in (bus.main, bus.aux)] == [1, 1]
    assert run("quarantine") == "nothing is in quarantine\n"

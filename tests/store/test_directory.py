"""A process's copy of the routing table, however it came about, is the table."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from routemaster.bus import Bus, assemble
from routemaster.domain.token import digest
from routemaster.errors import NotFound
from routemaster.store import scripts
from routemaster.store.directory import Directory
from routemaster.store.table import Client
from routemaster.subscribe import leave_topic, unsubscribe
from tests.busses import follow, give_token
from tests.lua.dump import pipelined

KEPT_CHANGES = 10_000
CLIENT = Client("c", "c--1", "api", 1)

NAMES = st.sampled_from(["s", "t", "u"])
TOPICS = st.sampled_from(["a", "ab", "b"])
CHANGES = st.one_of(
    st.tuples(st.just("follow"), NAMES, st.sampled_from(["a", "ab", "b", "a*"]), st.integers(1, 2)),
    st.tuples(st.just("unsubscribe"), NAMES),
    st.tuples(st.just("leave"), NAMES, TOPICS),
    st.tuples(st.just("claim"), TOPICS, st.sampled_from(["", "p", "q"])),
    st.tuples(st.just("delete"), TOPICS),
    st.tuples(st.just("token"), NAMES),
    st.tuples(st.just("revoke"), NAMES),
    st.tuples(st.just("look")),
)


def change(bus: Bus, what: str, *args) -> None:
    table = bus.directory.fresh()
    if what == "follow":
        follow(bus, args[0], args[1], concurrency=args[2])
    elif what == "unsubscribe":
        quietly(unsubscribe, bus, *args)
    elif what == "leave":
        quietly(leave_topic, bus, *args)
    elif what == "claim":
        bus.topics.claim(table, *args)
    elif what == "delete":
        bus.topics.remove(table, *args)
    elif what == "token":
        bus.tokens.add(args[0], CLIENT)
    elif what == "revoke":
        bus.tokens.remove(digest(args[0]))


def quietly(act, *args) -> None:
    try:
        act(*args)
    except NotFound:
        pass


def full(bus: Bus):
    """The table as a process reads it that has just started."""
    return Directory(bus.link, bus.keys).fresh()


@pytest.fixture
def bus(settings):
    made = assemble(settings)
    yield made
    made.link.close()


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=st.lists(CHANGES, max_size=20))
def test_reloading_what_changed_is_reloading_everything(bus, changes):
    bus.link.call("FLUSHALL")
    lazy = Directory(bus.link, bus.keys)  # looks now and then
    lazy.fresh()
    for what, *args in changes:
        change(bus, what, *args)
        assert bus.directory.fresh() == full(bus)
        if what == "look":
            assert lazy.fresh() == full(bus)
    assert lazy.fresh() == full(bus)


@pytest.mark.parametrize("count", [KEPT_CHANGES - 10, KEPT_CHANGES + 1])
def test_more_changes_than_are_remembered(bus, redis_server, count):
    follow(bus, "s", "a")
    bus.tokens.add("first", CLIENT)
    late = Directory(bus.link, bus.keys)
    late.fresh()
    bus.tokens.remove(digest("first"))
    bus.tokens.add("second", CLIENT)  # so that the script is known
    sha = scripts.load().token_add.sha
    where = [bus.keys.routes, bus.keys.changes, bus.keys.tokens]
    record = bus.link.call("HGET", bus.keys.tokens, digest("second"))
    calls = [("EVALSHA", sha, 3, *where, f"digest{n}", record) for n in range(count // 2)]
    with redis_server.client() as client:
        pipelined(client, calls)
        assert client.zcard(bus.keys.changes) <= KEPT_CHANGES
    assert late.fresh() == full(bus)
    assert len(late.table.clients) == count // 2 + 1


def test_nothing_changed_costs_one_read(bus):
    follow(bus, "s", "a")
    table = bus.directory.fresh()
    assert bus.directory.fresh() is table


@pytest.mark.parametrize("afterwards", ["nothing", "a change", "as many changes"])
def test_everything_was_erased(bus, settings, afterwards):
    for name in "st":
        follow(bus, name, "a")
        give_token(bus, name)
    bus.directory.fresh()
    bus.link.call("FLUSHALL")
    other = assemble(settings)
    if afterwards != "nothing":
        give_token(other, "new")
    if afterwards == "as many changes":
        for name in "uvw":
            follow(other, name, "b")
    assert bus.directory.fresh() == full(bus)
    assert "a" not in bus.directory.table.topics


def test_a_failover_lost_the_newest_change(bus, settings, redis_server):
    """The replica that took over had not seen it. Another change then makes the version newer
    than any that this process knew; what was lost must go nevertheless."""
    follow(bus, "s", "a")
    with redis_server.client() as client:
        before = {key: client.dump(key) for key in client.keys("*")}
        follow(bus, "lost", "a")
        bus.directory.fresh()
        client.flushall()
        for key, value in before.items():
            client.restore(key, 0, value)
    other = assemble(settings)
    give_token(other, "new")
    assert bus.directory.fresh() == full(bus)
    assert list(bus.directory.table.routes) == ["s"]


def test_the_version_went_back(bus, redis_server):
    follow(bus, "s", "a")
    with redis_server.client() as client:
        before = {key: client.dump(key) for key in client.keys("*")}
        follow(bus, "lost", "a")
        bus.directory.fresh()
        client.flushall()
        for key, value in before.items():
            client.restore(key, 0, value)
    assert bus.directory.fresh() == full(bus)
    assert list(bus.directory.table.routes) == ["s"]


def test_a_full_redis_can_still_be_read(bus, settings, redis_server):
    follow(bus, "s", "a")
    with redis_server.client() as client:
        client.config_set("maxmemory", "1")
        started = assemble(settings).directory
        assert list(started.fresh().routes) == ["s"]
        bus.subscribers.remove("s", "uid")
        assert not started.fresh().routes

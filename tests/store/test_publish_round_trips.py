"""A publish costs one round trip, whoever listens; and both languages spell a job alike."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from routemaster.bus import assemble
from routemaster.domain.job import deliver
from routemaster.store.channels import Channels, Heard
from routemaster.store.live import told
from tests.busses import event, follow, give_token, publish
from tests.integration.processes import eventually
from tests.lua.calls import accepted
from tests.proxy import Proxy


@pytest.fixture
def proxy(redis_server):
    with Proxy(redis_server.port) as started:
        yield started


@pytest.fixture
def bus(settings, proxy):
    made = assemble(replace(settings, redis_url=proxy.url))
    give_token(made, "publisher")
    yield made
    made.link.close()


@pytest.mark.parametrize("subscribers", [0, 1, 10, 100])
@pytest.mark.parametrize("events", [1, 50])
def test_one_command_for_each_publish(bus, proxy, subscribers, events):
    for number in range(subscribers):
        follow(bus, f"s{number}", "a", max=7)
    body = json.dumps([event(n) for n in range(events)]).encode()
    publish(bus, "publisher", "a", body)  # claims the topic, reads the table, loads the script
    proxy.watch()
    for _ in range(3):
        assert publish(bus, "publisher", "a", body).events == events
    assert proxy.exchanges == [["EVALSHA"]] * 3


def test_ids_facets_and_targets_cost_no_more(bus, proxy):
    follow(bus, "s", "a", concurrency=3)
    publish(bus, "publisher", "a", json.dumps(event()).encode())
    fields = [{"id": "1"}, {"facet": "x"}, {"target": "s"}, {}]
    body = json.dumps([event(n, **more) for n, more in enumerate(fields)]).encode()
    proxy.watch()
    publish(bus, "publisher", "a", body, key="k")
    assert proxy.exchanges == [["EVALSHA"]]


def test_a_changed_table_costs_a_reload_once(bus, proxy):
    body = json.dumps(event()).encode()
    publish(bus, "publisher", "a", body)
    give_token(assembled_elsewhere(bus), "other")
    proxy.watch()
    publish(bus, "publisher", "a", body)
    assert [e[0] for e in proxy.exchanges].count("EVALSHA") == 2
    proxy.watch()
    publish(bus, "publisher", "a", body)
    assert proxy.exchanges == [["EVALSHA"]]


def test_streams_cost_no_round_trip_and_are_forgotten_when_nobody_keeps_them(bus, proxy, settings):
    body = json.dumps([event(1), event(2)]).encode()
    publish(bus, "publisher", "a", body)
    direct = assemble(settings)
    listening = Channels(direct.link)
    listening.listen_to({bus.live.channel("a")})
    eventually(lambda: bus.link.call("PUBSUB", "NUMSUB", bus.live.channel("a"))[1])
    publish(bus, "publisher", "a", body)  # quiet: nobody says that it is followed
    bus.live.beat()
    proxy.watch()
    publish(bus, "publisher", "a", body)
    assert proxy.exchanges == [["EVALSHA"]]
    heard: list[Heard] = []
    while len(heard) < 2:
        heard += listening.read()
    listening.close()
    direct.link.close()
    news = told(heard[1].payload)
    assert news and (news.before, len(news.events)) == (4, 2)
    bus.link.call("HSET", bus.keys.routes, "live", "1")
    publish(bus, "publisher", "a", body)
    assert bus.link.call("HGET", bus.keys.routes, "live") is None


def assembled_elsewhere(bus):
    """Another process, as far as Redis can tell."""
    return assemble(bus.settings)


@pytest.mark.parametrize("subscriber", ["s", "a:b-c_1", "x" * 31, "x" * 32, "x" * 64])
@pytest.mark.parametrize(
    "facet", [None, "x", "|", "a|b", "é", "x" * 29, "x" * 30, "ü" * 128, "\U0001f600" * 128]
)
def test_a_job_made_in_lua_is_a_job_made_in_python(bus, subscriber, facet):
    follow(bus, subscriber, "a", max=1)
    table = bus.directory.fresh()
    bus.events.publish(table, table.topics["a"], accepted([1], facet))
    lane = "0" if facet is None else f"f:{facet}"
    assert set(bus.main.snapshot().index) == {deliver(subscriber, lane).dump()}
    lease = bus.main.take("w", "l", 1000, 1).leases[0]
    assert (lease.batch.subscriber, lease.batch.lane) == (subscriber, lane)
    assert bus.lanes.audit(subscriber) == bus.main.audit() == []

from __future__ import annotations

from routemaster.bus import assemble
from tests.busses import follow
from tests.lua.calls import NOW, accepted
from tests.lua.dump import dump
from tests.lua.invariants import problems


def test_expired_leases_are_not_counted_against_the_next_of_that_name(settings, redis_server):
    """A lease expires, then its subscriber is paused: the job waits, and keeps its count."""
    bus = assemble(settings)
    follow(bus, "s", "a", max=1)
    table = bus.directory.fresh()
    bus.events.publish(table, table.topics["a"], accepted([1]), now_ms=NOW)
    bus.main.take("w", "l1", 100, 1, now_ms=NOW)
    bus.main.scrub(now_ms=NOW + 100)
    bus.link.call("HSET", bus.keys.subscriber("s"), "state", "paused")
    bus.main.take("w", "l2", 100, 1, now_ms=NOW + 100)
    assert bus.link.call("LLEN", bus.keys.waiting("s")) == 1
    bus.subscribers.remove("s", "uid")
    assert bus.link.call("EXISTS", bus.keys.reclaims("main")) == 0
    with redis_server.client() as client:
        assert problems(dump(client), bus.keys) == []

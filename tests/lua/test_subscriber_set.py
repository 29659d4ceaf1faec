from __future__ import annotations

from routemaster.bus import assemble
from tests.busses import follow
from tests.lua.calls import NOW, accepted


def test_more_concurrency_lets_waiting_lanes_in_at_once(settings):
    bus = assemble(settings)
    follow(bus, "s", "a", max=1)
    table = bus.directory.fresh()
    for facet in "xyz":
        bus.events.publish(table, table.topics["a"], accepted([1], facet), now_ms=NOW)
    bus.main.take("w", "l", 100, 0, now_ms=NOW)
    assert len(bus.main.snapshot().instant) == 1
    follow(bus, "s", "a", max=1, concurrency=2)
    assert len(bus.main.snapshot().instant) == 2
    assert bus.lanes.audit("s", NOW) == []

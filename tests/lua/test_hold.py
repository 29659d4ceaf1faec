from __future__ import annotations

from routemaster.bus import assemble
from tests.busses import follow
from tests.lua.calls import NOW, accepted


def test_a_lane_that_waits_after_a_failure_is_not_brought_forward(settings):
    """Not even when the batch that failed is given up, and the one behind it, still open, fills."""
    bus = assemble(settings)
    follow(bus, "s", "a", max=2)
    table = bus.directory.fresh()

    def publish(*numbers: int) -> None:
        bus.events.publish(table, table.topics["a"], accepted(numbers), now_ms=NOW)

    publish(1, 2, 3)
    lease = bus.main.take("w", "l", 100, 1, now_ms=NOW).leases[0]
    assert bus.main.nack(lease.job, lease.fence, 500, now_ms=NOW)
    assert bus.lanes.drop("s", "0", 1, "age", NOW) == (1, 2)
    publish(4)
    assert bus.main.snapshot().scheduled == {lease.job: NOW + 500}

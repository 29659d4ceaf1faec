"""A handful of faults, seconds each: the short form of test_faults.py."""

from __future__ import annotations

import pytest

from tests.faults import nemesis
from tests.faults.run import run, seed_of_now


@pytest.mark.slow
def test_a_bus_that_is_killed_frozen_and_cut_off_keeps_its_promises():
    run(
        seed_of_now(),
        [
            # First: whoever gives leases back dies, and then there is one to give back.
            nemesis.worker_killed_at("queue_scrub", "before"),
            nemesis.worker_killed_at("queue_ack", "before"),
            nemesis.worker_killed_at("queue_take", "after"),
            nemesis.web_killed_at("publish", "after"),
            nemesis.reply_dropped_to("publish"),
            nemesis.connections_cut,
            nemesis.redis_killed,
            nemesis.redis_full,
            nemesis.rolling_restart,
        ],
    )

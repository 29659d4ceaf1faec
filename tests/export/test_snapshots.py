"""Counters: max - min of each series and epoch, added up, is what was counted."""

from __future__ import annotations

from collections import defaultdict

import pytest

from routemaster.domain.datasets import COUNTERS
from routemaster.export.exporter import Exporter
from routemaster.export.files import listing
from tests.busses import follow
from tests.export.drained import rows
from tests.lua.calls import accepted


def count(bus, name, amount):
    bus.link.call("HINCRBY", bus.keys.counters, name, amount)


def increase(folder, name, **tags):
    """As the contract says to compute it."""
    epochs = defaultdict(list)
    for row in rows(folder, "counters"):
        if row["name"] == name and all(row[tag] == value for tag, value in tags.items()):
            epochs[row["epoch"], row["topic"], row["subscriber"]].append(row["value"])
    assert all(value >= 0 for values in epochs.values() for value in values)
    return sum(max(values) - min(values) for values in epochs.values())


@pytest.fixture
def exporter(bus, folder):
    bus.counters.snapshot()  # as every process does at its start
    return Exporter(bus, folder)


def test_every_count_is_in_the_increase(bus, exporter, folder):
    for amount in (5, 0, 7):
        count(bus, "events.published,topic=a", amount)
        exporter.turn()
    assert increase(folder, "events.published") == 12


def test_a_series_that_begins_late_begins_at_zero(bus, exporter, folder):
    exporter.turn()
    count(bus, "events.dropped,reason=memory,subscriber=s", 5000)
    exporter.turn()
    assert increase(folder, "events.dropped", subscriber="s", reason="memory") == 5000


def test_another_exporter_goes_on_where_the_first_ended(bus, exporter, folder):
    count(bus, "a", 1)
    exporter.turn()
    count(bus, "a", 10)
    count(bus, "b", 100)
    Exporter(bus, folder).turn()
    assert (increase(folder, "a"), increase(folder, "b")) == (11, 100)


def test_two_exporters_by_turns_double_nothing(bus, exporter, folder):
    other = Exporter(bus, folder)
    for number in range(6):
        count(bus, "a", 10)
        count(bus, f"b{number}", 7)
        (exporter, other)[number % 2].turn()
    assert increase(folder, "a") == 60
    assert [increase(folder, f"b{n}") for n in range(6)] == [7] * 6


def test_counters_that_are_gone_begin_a_new_epoch_at_zero(bus, exporter, folder):
    count(bus, "a", 100)
    exporter.turn()
    bus.link.call("DEL", bus.keys.counters)
    count(bus, "a", 30)
    exporter.turn()
    count(bus, "a", 3)
    exporter.turn()
    assert increase(folder, "a") == 133
    assert len({row["epoch"] for row in rows(folder, "counters")}) == 2


def test_a_process_that_starts_after_a_flush_begins_the_epoch(bus, exporter, folder):
    count(bus, "a", 100)
    exporter.turn()
    bus.link.call("FLUSHALL")
    bus.counters.snapshot()
    count(bus, "a", 30)
    exporter.turn()
    assert increase(folder, "a") == 130


@pytest.mark.parametrize("since", [10, 60, 150])
def test_an_old_backup_is_never_negative_and_never_doubled(bus, exporter, folder, since):
    """100 was exported at 50 and at 100; the backup is of 40."""
    count(bus, "a", 40)
    exporter.turn()
    backup = bus.link.call("HGETALL", bus.keys.counters)
    count(bus, "a", 60)
    exporter.turn()
    bus.link.call("DEL", bus.keys.counters)
    bus.link.call("HSET", bus.keys.counters, *backup)
    count(bus, "a", since)
    exporter.turn()
    count(bus, "a", 5)
    exporter.turn()
    assert 105 <= increase(folder, "a") <= 105 + since


def test_a_bus_that_was_counting_before_its_export_began(bus, folder):
    count(bus, "a", 1_000_000)
    exporter = Exporter(bus, folder)
    for _ in range(2):
        exporter.turn()
        count(bus, "a", 7)
    assert increase(folder, "a") == 7


def test_the_epoch_is_no_counter(bus, exporter):
    assert bus.counters.read() == {}
    exporter.turn()
    assert bus.counters.read() == {}


def test_a_tag_without_a_column_is_left_out_rather_than_mixed_up(bus, exporter, folder):
    count(bus, "a,colour=red", 5)
    count(bus, "a,colour=blue", 7)
    exporter.turn()
    assert rows(folder, "counters") == []


def test_gauges_and_health(bus, exporter, folder):
    follow(bus, "s", "a")
    table = bus.directory.fresh()
    bus.events.publish(table, table.topics["a"], accepted(range(3)))
    lease = bus.main.take("w", "l", 1000, 1, now_ms=2**42).leases[0]
    bus.main.nack(lease.job, lease.fence, 10, damage=2)
    exporter.turn()
    [health] = rows(folder, "health")
    assert (health["subscriber"], health["state"]) == ("s", "active")
    assert (health["health_points"], health["consecutive_failures"]) == (98, 1)
    gauges = {
        (r["name"], r["subscriber"], r["queue"], r["state"]): r for r in rows(folder, "gauges")
    }
    assert gauges["events.queued", "s", None, None]["value"] == 3
    assert gauges["jobs", None, "main", "scheduled"]["value"] == 1
    high, most = (gauges[f"redis.{n}_bytes", None, None, None]["value"] for n in ("high", "max"))
    assert 0 < high < most
    assert {name for name, *_ in gauges} == {
        "events.queued", "batches.queued", "batches.oldest_age_seconds", "jobs",
        "redis.used_bytes", "redis.max_bytes", "redis.high_bytes", "workers",
    }  # fmt: skip


def test_failures_in_a_row_end_with_a_success(bus, exporter, folder):
    follow(bus, "s", "a")
    table = bus.directory.fresh()
    bus.events.publish(table, table.topics["a"], accepted(range(3)))
    for turn in range(4):
        lease = bus.main.take("w", f"l{turn}", 1000, 1, now_ms=2**42 + turn * 100).leases[0]
        if turn < 3:
            bus.main.nack(lease.job, lease.fence, 0, damage=2, now_ms=2**42)
        else:
            bus.main.ack(lease.job, lease.fence, lease.bid, health=1)
        exporter.turn()
    assert [row["consecutive_failures"] for row in rows(folder, "health")] == [1, 2, 3, 0]


def test_no_counters_make_no_file(bus, exporter, folder):
    exporter.turn()
    assert listing(folder, COUNTERS).files == []

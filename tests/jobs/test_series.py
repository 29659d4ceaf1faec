"""A row for each minute: what it brought, counted once, and never less than nothing."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from routemaster.domain.attempt import Attempt
from routemaster.domain.job import Job
from routemaster.jobs import jobs
from routemaster.jobs.series import Series
from routemaster.store.series import (
    KEPT_MINUTES,
    MINUTE_MS,
    MOST_SUBSCRIBERS,
    WHOLE_BUS,
    Entry,
    Flow,
    Minute,
)
from routemaster.subscribe import unsubscribe
from tests.busses import event, follow, give_token, publish


def never() -> bool:
    return False


def one(minute: int, added: int, name: str = WHOLE_BUS) -> Entry:
    return Entry(name, Flow(added=added), (7,))


def append(bus, minute: int, *entries: Entry) -> int:
    return int(bus.series.append(minute, entries))


def rises(bus, name: str = WHOLE_BUS) -> list[tuple[int, int, int]]:
    rows = bus.series.read([name], 9999)[name]
    return [(row.minute, row.span, row.flow.added) for row in rows]


def test_the_first_totals_are_where_counting_begins(bus):
    assert append(bus, 100, one(100, 5000)) == 0
    assert append(bus, 101, one(101, 5007)) == 1
    assert rises(bus) == [(101, 1, 7)]


def test_a_minute_has_one_row_whoever_writes(bus):
    append(bus, 100, one(100, 0))
    assert [append(bus, 101, one(101, n)) for n in (10, 11, 12)] == [1, 0, 0]
    # A worker that read its numbers before and says so only now.
    assert append(bus, 100, one(100, 3)) == 0
    append(bus, 102, one(102, 15))
    assert rises(bus) == [(101, 1, 10), (102, 1, 5)]


def test_missed_minutes_are_in_the_next_row(bus):
    append(bus, 100, one(100, 0))
    append(bus, 160, one(160, 600))
    assert rises(bus) == [(160, 60, 600)]


def test_counters_that_began_anew_are_no_negative_rise(bus):
    for minute, total in ((100, 1000), (101, 1010), (102, 4), (103, 9)):
        append(bus, minute, one(minute, total))
    assert rises(bus) == [(101, 1, 10), (102, 1, 4), (103, 1, 5)]


def test_redis_clock_may_go_back(bus):
    for minute, total in ((1000, 0), (1001, 1), (500, 2), (501, 3), (502, 5)):
        append(bus, minute, one(minute, total))
    assert rises(bus) == [(501, 1, 1), (502, 1, 2)]


def test_a_series_is_bounded(bus):
    for minute in range(KEPT_MINUTES + 3):
        append(bus, minute, one(minute, minute))
    assert len(rises(bus)) == KEPT_MINUTES
    assert bus.link.call("PTTL", bus.keys.series) > 0


def test_a_day_of_a_series_fits_in_a_few_dozen_kilobytes(bus):
    busy = Flow(2_000_000, 1_000_000, 30_000, 3000, 9_000_000, 500)
    for minute in range(KEPT_MINUTES + 1):
        totals = Flow(*(count * minute for count in busy.as_list()))
        at = 29_000_000 + minute
        entries = [Entry("", totals, (99_999, 120, 3, 900_000_000, 40)),
                   Entry("mailer", totals, (99_999, 120, 98))]  # fmt: skip
        append(bus, at, *entries)
    for key in (bus.keys.series, bus.keys.series_prefix + "mailer"):
        assert bus.link.call("MEMORY", "USAGE", key, "SAMPLES", 0) < 80_000


def test_who_is_not_named_any_more_is_forgotten(bus):
    for minute in (100, 101):
        append(bus, minute, one(minute, 0), one(minute, 0, "gone"), one(minute, 0, "here"))
    append(bus, 102, one(102, 0), one(102, 0, "here"))
    assert bus.series.names() == {WHOLE_BUS, "here"}
    assert bus.link.call("EXISTS", bus.keys.series_prefix + "gone") == 0
    assert len(rises(bus, "here")) == 2


def test_who_came_later_begins_later(bus):
    append(bus, 100, one(100, 0))
    append(bus, 101, one(101, 5), one(101, 900, "late"))
    append(bus, 102, one(102, 7), one(102, 901, "late"))
    assert rises(bus) == [(101, 1, 5), (102, 1, 2)]
    assert rises(bus, "late") == [(102, 1, 1)]


@pytest.mark.parametrize(
    "row", [b"", b"\xc1", b"\x90", b"\x92\x01\x01", b"\xa1x", b"\x98" + b"\xc0" * 8]
)
def test_what_is_no_row_is_passed_over(row):
    assert Minute.parse(row) is None


def work(bus) -> None:
    """3 events to mailer: 2 delivered after a failure, 1 waits."""
    give_token(bus, "shop")
    follow(bus, "mailer", "orders", max=2, timeout=0)
    publish(bus, "shop", "orders", json.dumps([event(n) for n in (1, 2, 3)]).encode())
    attempt = Attempt("0", "b", 1, 2, 9, 1, 1, 2, "failed", 500, "http_500", "w", 1)
    (lease,) = bus.main.take("w", "l1", 60_000, 1).leases
    bus.main.nack(lease.job, lease.fence, 0, damage=2, attempt=attempt)
    (lease,) = bus.main.take("w", "l2", 60_000, 1).leases
    bus.main.ack(lease.job, lease.fence, lease.bid, attempt=replace(attempt, outcome="delivered"))


def test_a_row_says_what_went_through_and_what_waits(bus):
    job = Series(bus)
    job.run(never)
    begin(bus)
    bus.workers.beat("w1")
    work(bus)
    job.run(never)
    (row,) = bus.series.read([WHOLE_BUS], 10)[WHOLE_BUS]
    assert (row.flow.added, row.flow.delivered, row.flow.succeeded) == (3, 2, 1)
    assert (row.flow.failed, row.flow.dropped) == (1, 0)
    queued, waits_s, workers, used, _ = row.gauges
    assert (queued, workers) == (1, 1) and used > 100_000 and waits_s < 60


def begin(bus) -> None:
    """As if the last row were a minute old."""
    flat = bus.link.call("HGETALL", bus.keys.series_totals)
    for name, row in zip(flat[::2], flat[1::2], strict=True):
        minute, rest = row.split(b" ", 1)
        earlier = b"%d %s" % (int(minute) - 1, rest)
        bus.link.call("HSET", bus.keys.series_totals, name, earlier)


def test_a_subscriber_has_its_own(bus):
    work(bus)
    job = Series(bus)
    job.run(never)
    begin(bus)
    publish(bus, "shop", "orders", json.dumps([event(4)]).encode())
    job.run(never)
    (row,) = bus.series.read(["mailer"], 10)["mailer"]
    assert (row.flow.added, row.flow.delivered) == (1, 0)
    queued, _, health = row.gauges
    assert (queued, health) == (2, 98)


def test_who_leaves_takes_nothing_from_the_whole(bus):
    work(bus)
    job = Series(bus)
    job.run(never)
    begin(bus)
    unsubscribe(bus, "mailer")
    job.run(never)
    (row,) = bus.series.read([WHOLE_BUS], 10)[WHOLE_BUS]
    assert (row.flow.delivered, row.flow.dropped) == (0, 1)
    assert bus.series.names() == {WHOLE_BUS}


def test_so_many_subscribers_have_a_series_and_keep_it(bus):
    for number in range(3):
        follow(bus, f"early{number}", "orders")
    Series(bus).run(never)
    names = [f"s{number:03}" for number in range(MOST_SUBSCRIBERS)]
    k = bus.keys
    fields = ("max_events", 10, "timeout", 50, "concurrency", 1, "state", "active")
    bus.link.many([("HSET", k.subscriber(name), *fields) for name in names])
    bus.link.call("SADD", k.subscribers, *names)
    bus.link.many([("DEL", k.changes), ("HSET", k.routes, "version", "99")])
    begin(bus)
    Series(bus).run(never)
    kept = bus.series.names() - {WHOLE_BUS}
    assert len(kept) == MOST_SUBSCRIBERS
    assert {"early0", "early1", "early2"} <= kept


def test_workers_know_the_job(bus):
    assert "series" in jobs(bus)
    jobs(bus)[Job("series").name](never)
    assert bus.series.names() == {WHOLE_BUS}


def test_a_full_redis_keeps_its_history(bus, redis_server):
    Series(bus).run(never)
    begin(bus)
    with redis_server.client() as client:
        client.config_set("maxmemory", "1")
    Series(bus).run(never)
    assert len(bus.series.read([WHOLE_BUS], 10)[WHOLE_BUS]) == 1


def test_minutes_are_by_redis_clock(bus):
    Series(bus).run(never)
    seconds, _ = bus.link.call("TIME")
    written = bus.link.call("HGET", bus.keys.series_totals, "").split()[0]
    assert abs(int(written) - int(seconds) * 1000 // MINUTE_MS) <= 1

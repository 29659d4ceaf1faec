from __future__ import annotations

from datetime import timedelta
from itertools import accumulate
from statistics import fmean, linear_regression
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from routemaster.domain.datasets import COUNTERS, DROPS, GAUGES
from spark_jobs.backlog_report import (
    FLOWS,
    MEASURES,
    MEMORY,
    STEADY_PER_SECOND,
    depth,
    forecast,
    losses,
    memory,
)
from tests.spark_jobs.oracle import (
    LENGTHS,
    TIMES,
    all_of,
    assert_same,
    at,
    by,
    cases,
    few_questions,
    increases,
    rows_of,
    start_of,
)

LOOKS = st.lists(
    st.tuples(TIMES, st.sampled_from(list(MEASURES)), st.integers(0, 5_000).map(float)), max_size=12
)
SNAPSHOTS = st.lists(
    st.tuples(TIMES, st.sampled_from(["1", "2"]), st.sampled_from(list(FLOWS)), st.integers(0, 99)),
    max_size=12,
)


def gauge_rows(looks, subscriber):
    return [
        {"taken_at": time, "name": name, "subscriber": subscriber, "value": value}
        for time, name, value in looks
    ]


def counter_rows(snapshots, subscriber):
    """Cumulative in each series and epoch, in order of time; every third snapshot comes twice."""
    rows = []
    for (epoch, name), steps in by_series(snapshots).items():
        steps.sort()
        totals = accumulate(step for _, step in steps)
        for (time, _), total in zip(steps, totals, strict=True):
            row = {"taken_at": time, "epoch": epoch, "name": name, "subscriber": subscriber}
            tags = {"topic": None, "publisher": None, "outcome": None, "reason": None}
            rows += [{**row, **tags, "value": total}] * (1 + (total % 3 == 0))
    return rows


def by_series(snapshots):
    found: dict[Any, Any] = {}
    for time, epoch, name, step in snapshots:
        found.setdefault((epoch, name), []).append((time, step))
    return found


def looks_of(gauges):
    """(subscriber) -> [(time, {measure: value})], one per time at which events were counted."""
    found: dict[str, Any] = {}
    for row in gauges:
        if row["name"] in MEASURES:
            look = found.setdefault(row["subscriber"], {}).setdefault(row["taken_at"], {})
            name = MEASURES[row["name"]]
            look[name] = max(row["value"], look.get(name, 0.0))
    return {
        subscriber: [(t, looks[t]) for t in sorted(looks) if "events" in looks[t]]
        for subscriber, looks in found.items()
    }


def last(looks, name):
    """What the last look says; it may not know."""
    return looks[-1][1].get(name)


def periods(look_before, start, bucket):
    """Those that a row tells of: its own, and those without a look since the row before."""
    first = start_of(look_before[0], bucket)
    count = (start - first) // LENGTHS[bucket]
    return [start - n * LENGTHS[bucket] for n in range(count or 1)]


def expected_depth(gauges, counters, bucket):
    grown = increases(counters, bucket)
    rows = []
    for subscriber, looks in looks_of(gauges).items():
        before = None
        starts = sorted({start_of(time, bucket) for time, _ in looks})
        for start in starts:
            mine = [look for look in looks if start_of(look[0], bucket) == start]
            begin = before or mine[0]
            seconds = (mine[-1][0] - begin[0]).total_seconds()
            flows = {
                flow: sum(
                    grown.get((name, subscriber, one), 0) for one in periods(begin, start, bucket)
                )
                for name, flow in FLOWS.items()
            }
            change = mine[-1][1]["events"] - begin[1]["events"]

            def rate(amount, seconds=seconds):
                return amount / seconds if seconds else None

            def most(name, mine=mine):
                return max((look[name] for _, look in mine if name in look), default=None)

            rows.append(
                {
                    "subscriber": subscriber,
                    "start": start,
                    "samples": len(mine),
                    "events_mean": fmean(look["events"] for _, look in mine),
                    "events_max": most("events"),
                    "events_last": last(mine, "events"),
                    "batches_max": most("batches"),
                    "batches_last": last(mine, "batches"),
                    "age_max_seconds": most("age_seconds"),
                    "age_last_seconds": last(mine, "age_seconds"),
                    "seconds": seconds,
                    **flows,
                    "growth_per_second": rate(change),
                    "added_per_second": rate(flows["added"]),
                    "drained_per_second": rate(flows["delivered"] + flows["dropped"]),
                }
            )
            before = mine[-1]
    return rows


@few_questions
@given(cases(LOOKS), cases(SNAPSHOTS), st.sampled_from(["hour", "day"]))
def test_depth_and_rates_are_those_of_a_walk_through_the_snapshots(frame, looks, snapshots, bucket):
    gauges, counters = all_of(gauge_rows, looks), all_of(counter_rows, snapshots)

    found = rows_of(depth(frame(GAUGES, gauges), frame(COUNTERS, counters), bucket))

    assert_same(found, expected_depth(gauges, counters, bucket), "subscriber", "start")


UNTIL = at(3_600)


def line_through(looks, name):
    """The slope, or None where there is no line: fewer than two times."""
    known = [(t, look[name]) for t, look in looks if name in look]
    if len(known) < 2:
        return None
    return linear_regression(
        [(t - UNTIL).total_seconds() for t, _ in known], [value for _, value in known]
    ).slope


def expected_forecast(gauges, lookback_seconds):
    rows = []
    since = UNTIL - timedelta(seconds=lookback_seconds)
    for subscriber, looks in looks_of(gauges).items():
        looks = [look for look in looks if since <= look[0] < UNTIL]
        if not looks:
            continue
        events, growth = last(looks, "events"), line_through(looks, "events")
        trend = "steady"
        if events == 0:
            trend = "empty"
        elif growth and abs(growth) > STEADY_PER_SECOND:
            trend = "growing" if growth > 0 else "draining"
        wait = -events / growth if trend == "draining" else None
        rows.append(
            {
                "subscriber": subscriber,
                "at": looks[-1][0],
                "events": events,
                "batches": last(looks, "batches"),
                "age_seconds": last(looks, "age_seconds"),
                "samples": len(looks),
                "growth_per_second": growth,
                "trend": trend,
                "seconds_to_drain": wait,
                "empty_at": wait and looks[-1][0] + timedelta(milliseconds=round(wait * 1000)),
            }
        )
    return rows


@few_questions
@given(cases(LOOKS), st.sampled_from([900, 3_600]))
def test_a_forecast_is_the_line_through_the_last_looks(frame, looks, lookback):
    gauges = all_of(gauge_rows, looks)

    found = rows_of(forecast(frame(GAUGES, gauges), UNTIL, lookback))

    expected = expected_forecast(gauges, lookback)
    for row, other in zip(by_name(found), by_name(expected), strict=True):
        # A difference of digits in the ninth place may be a millisecond in the forecast's time.
        close = timedelta(seconds=1e-6 * (other["seconds_to_drain"] or 0) + 0.002)
        time, other_time = row.pop("empty_at"), other.pop("empty_at")
        assert time == other_time or abs(time - other_time) <= close
    assert_same(found, expected, "subscriber")


def by_name(rows):
    return sorted(rows, key=lambda row: row["subscriber"])


def memory_rows(*looks):
    return [
        {"taken_at": at(seconds), "name": name, "subscriber": None, "value": float(value)}
        for seconds, *values in looks
        for name, value in zip(MEMORY, values, strict=True)
    ]


def test_memory_is_foreseen_to_reach_the_mark_above_which_batches_are_dropped(frame):
    looks = memory_rows((0, 100, 1_000, 2_000), (60, 160, 1_000, 2_000), (120, 220, 1_000, 2_000))

    (row,) = rows_of(memory(frame(GAUGES, looks * 2), UNTIL))

    assert row == {
        "at": at(120),
        "used_bytes": 220.0,
        "high_bytes": 1_000.0,
        "max_bytes": 2_000.0,
        "samples": 3,
        "growth_bytes_per_second": 1.0,
        "seconds_to_high": 780.0,
        "high_at": at(900),
    }


def test_memory_above_its_mark_is_there_already_and_shrinking_never_comes_there(frame):
    above = memory_rows((0, 1_500, 1_000, 2_000), (60, 1_400, 1_000, 2_000))
    shrinking = memory_rows((0, 500, 1_000, 2_000), (60, 400, 1_000, 2_000))
    unlimited = memory_rows((0, 500, 0, 0), (60, 600, 0, 0))

    waits = [
        rows_of(memory(frame(GAUGES, looks), UNTIL)) for looks in (above, shrinking, unlimited)
    ]

    assert [row["seconds_to_high"] for (row,) in waits] == [0.0, None, None]
    assert rows_of(memory(frame(GAUGES, []), UNTIL)) == []


# Steps of a lane's life: (batches given up, events skipped because they were delivered, ...).
LANES = st.lists(
    st.tuples(
        st.sampled_from(["drop", "drop", "deliver", "begin again"]),
        st.integers(1, 5),  # events
        st.integers(0, 2_500),  # seconds since the step before
        st.sampled_from(["memory", "memory", "operator"]),
    ),
    max_size=15,
)


def drop_rows(steps, subscriber):
    rows: list[dict[str, Any]] = []
    seq, now = 1, 0
    for what, events, seconds, reason in steps:
        now += seconds
        seq = 1 if what == "begin again" else seq
        if what == "drop":
            row = {
                "id": f"{subscriber}-{len(rows)}",
                "subscriber": subscriber,
                "lane": "0",
                "events": events,
                "first_seq": seq,
                "last_seq": seq + events - 1,
                "created_at": at(now - 100),
                "dropped_at": at(now),
                "reason": reason,
            }
            rows.append(row)
        seq += events
    return rows


def expected_losses(drops):
    ranges = []
    for lane in by(drops, "subscriber", "lane").values():
        open_range: dict[str, Any] = {}
        for row in sorted(lane, key=lambda row: (row["dropped_at"], row["first_seq"])):
            goes_on = open_range and (row["first_seq"], row["reason"]) == (
                open_range["last_seq"] + 1,
                open_range["reason"],
            )
            if not goes_on:
                kept = ("subscriber", "lane", "reason", "first_seq")
                open_range = {name: row[name] for name in kept}
                open_range |= {"events": 0, "batches": 0}
                open_range["oldest_created_at"] = row["created_at"]
                open_range["dropped_from"] = row["dropped_at"]
                ranges.append(open_range)
            open_range["last_seq"] = row["last_seq"]
            open_range["events"] += row["events"]
            open_range["batches"] += 1
            open_range["dropped_until"] = row["dropped_at"]
    return ranges


@few_questions
@given(cases(LANES), st.randoms(use_true_random=False))
def test_what_was_lost_is_told_in_whole_ranges(frame, lanes, dice):
    drops = all_of(drop_rows, lanes)
    shuffled = dice.sample(drops, len(drops))

    found = rows_of(losses(frame(DROPS, shuffled)))

    assert_same(found, expected_losses(drops), "subscriber", "lane", "dropped_from", "first_seq")

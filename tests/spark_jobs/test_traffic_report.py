from __future__ import annotations

from statistics import fmean
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from routemaster.domain.datasets import ATTEMPTS, GAUGES, PUBLISHES
from spark_jobs.traffic_report import costs, topics
from tests.spark_jobs.oracle import (
    TIMES,
    all_of,
    assert_same,
    at,
    by,
    cases,
    few_questions,
    rows_of,
    start_of,
)

BUCKET = st.sampled_from(["hour", "day"])
MINUTES = st.lists(
    st.tuples(
        TIMES, st.sampled_from(["", "shop"]), st.integers(0, 50), st.integers(0, 9_999),
        st.integers(0, 5),
    ),
    max_size=8,
)  # fmt: skip
ATTEMPTS_OF_ONE = st.lists(
    st.tuples(
        TIMES, st.sampled_from(["delivered", "failed", "throttled", "gone"]), st.integers(1, 50),
        st.integers(1, 9_999), st.integers(0, 20_000),
    ),
    max_size=8,
)  # fmt: skip
LOOKS = st.lists(st.tuples(TIMES, st.integers(0, 5_000)), max_size=8)


def publish_rows(minutes, topic):
    return [
        {
            "minute": time.replace(second=0), "topic": topic, "publisher": publisher,
            "events": events, "bytes": size, "fanout": events * fanout,
        }
        for time, publisher, events, size, fanout in minutes
    ]  # fmt: skip


def attempt_rows(attempts, subscriber):
    names = ("finished_at", "outcome", "events", "bytes", "took_ms")
    return [
        {"subscriber": subscriber, "id": f"{subscriber}-{i}", **dict(zip(names, one, strict=True))}
        for i, one in enumerate(attempts)
    ]


def gauge_rows(looks, subscriber):
    """Every third look comes twice."""
    return [
        {"subscriber": subscriber, "taken_at": time, "value": float(value)}
        for time, value in looks
        for _ in range(1 + (value % 3 == 0))
    ]


def ratio(amount, whole):
    return amount / whole if whole else None


def with_shares(rows: list[dict[str, Any]], **names: str) -> list[dict[str, Any]]:
    for period in by(rows, "start").values():
        for share, name in names.items():
            whole = sum(row[name] for row in period)
            for row in period:
                row[share] = row[name] / whole if whole else 0.0
    return rows


def expected_topics(publishes, bucket):
    keyed = [{**row, "start": start_of(row["minute"], bucket)} for row in publishes]
    rows = []
    for (topic, publisher, start), mine in by(keyed, "topic", "publisher", "start").items():
        sums = {name: sum(row[name] for row in mine) for name in ("events", "bytes", "fanout")}
        ratios = {
            f"{name}_per_event": ratio(sums[name], sums["events"]) for name in ("bytes", "fanout")
        }
        rows.append({"topic": topic, "publisher": publisher, "start": start, **sums, **ratios})
    return with_shares(rows, share="events")


@few_questions
@given(cases(MINUTES), BUCKET)
def test_traffic_by_topic_and_publisher_is_the_sum_of_its_minutes(frame, minutes, bucket):
    publishes = all_of(publish_rows, minutes)

    found = rows_of(topics(frame(PUBLISHES, publishes), bucket))

    assert_same(found, expected_topics(publishes, bucket), "topic", "publisher", "start")


def expected_costs(attempts, gauges, bucket):
    def size_of(mine):
        return ratio(sum(row["bytes"] for row in mine), sum(row["events"] for row in mine))

    sizes = {
        subscriber: size_of(mine) for (subscriber,), mine in by(attempts, "subscriber").items()
    }
    event_seconds: dict[Any, float] = {}
    looks = {(row["subscriber"], row["taken_at"]): 0.0 for row in gauges}
    for row in gauges:
        key = (row["subscriber"], row["taken_at"])
        looks[key] = max(looks[key], row["value"])
    hours: dict[Any, list[float]] = {}
    for (subscriber, time), value in looks.items():
        hours.setdefault((subscriber, start_of(time)), []).append(value)
    for (subscriber, hour), values in hours.items():
        key = (subscriber, start_of(hour, bucket))
        event_seconds[key] = event_seconds.get(key, 0.0) + fmean(values) * 3_600
    keyed = [{**row, "start": start_of(row["finished_at"], bucket)} for row in attempts]
    sent = by(keyed, "subscriber", "start")
    rows = []
    for subscriber, start in sent.keys() | event_seconds.keys():
        mine = sent.get((subscriber, start), [])
        failed = [row for row in mine if row["outcome"] != "delivered"]
        size = sizes.get(subscriber) or size_of(attempts) or 0.0
        rows.append(
            {
                "subscriber": subscriber,
                "start": start,
                "attempts": len(mine),
                "failed_attempts": len(failed),
                "events": sum(row["events"] for row in mine if row not in failed),
                "bytes": sum(row["bytes"] for row in mine),
                "slot_seconds": sum(row["took_ms"] for row in mine) / 1_000,
                "failed_slot_seconds": sum(row["took_ms"] for row in failed) / 1_000,
                "redis_byte_seconds": event_seconds.get((subscriber, start), 0.0) * size,
            }
        )
    return with_shares(
        rows,
        attempts_share="attempts",
        slot_share="slot_seconds",
        redis_share="redis_byte_seconds",
    )


@few_questions
@given(cases(ATTEMPTS_OF_ONE), cases(LOOKS), BUCKET)
def test_each_subscriber_costs_what_its_attempts_and_its_queue_take(frame, attempts, looks, bucket):
    sent, gauges = all_of(attempt_rows, attempts), all_of(gauge_rows, looks)

    found = rows_of(costs(frame(ATTEMPTS, sent), frame(GAUGES, gauges), bucket))

    assert_same(found, expected_costs(sent, gauges, bucket), "subscriber", "start")


def test_a_queue_that_nobody_ever_delivered_from_costs_what_its_events_would_elsewhere(frame):
    sent = [{"subscriber": "other", "events": 10, "bytes": 1_000, "finished_at": at(0)}]
    waiting = [{"subscriber": "paused", "taken_at": at(s), "value": 5.0} for s in (0, 60)]

    rows = rows_of(costs(frame(ATTEMPTS, sent), frame(GAUGES, waiting)))

    found = {row["subscriber"]: row["redis_byte_seconds"] for row in rows}
    assert found == {"other": 0.0, "paused": 5 * 100 * 3_600}


def test_nothing_at_all_costs_nothing(frame):
    assert rows_of(costs(frame(ATTEMPTS, []), frame(GAUGES, []))) == []
    assert rows_of(topics(frame(PUBLISHES, []))) == []

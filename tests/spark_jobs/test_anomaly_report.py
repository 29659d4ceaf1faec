from __future__ import annotations

from datetime import timedelta
from statistics import fmean, median
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame

from routemaster.domain.datasets import ATTEMPTS, GAUGES, PUBLISHES
from spark_jobs.anomaly_report import MEASURES, NORMAL, alarms, hours
from tests.spark_jobs.oracle import (
    all_of,
    assert_same,
    at,
    by,
    cases,
    few_questions,
    rows_of,
    start_of,
)

DAYS = 9  # earlier ones
DAY = (at(0) + timedelta(days=DAYS)).date()
HOUR = timedelta(hours=1)
# What a subscriber or topic did in some hours of some days: how much, how well, how fast.
DEEDS = st.lists(
    st.tuples(
        st.integers(-1, DAYS + 1),  # one day too early, one too late
        st.integers(0, 2),  # hour
        st.sampled_from([3, 20, 21, 30]),  # attempts
        st.sampled_from([0, 0, 0, 4, 20]),  # of which fail
        st.sampled_from([5, 6, 7, 200]),  # events in a batch
        st.sampled_from([100, 150, 200, 9_000]),  # their age
    ),
    min_size=8, max_size=20,
)  # fmt: skip
LOOKED = st.lists(
    st.sampled_from([(5, 50), (5, 50), (5, 50), (20, 50), (5, 40), ()]),
    min_size=3 * (DAYS + 1), max_size=3 * (DAYS + 1),
)  # fmt: skip


def when(day, hour, minute=30):
    return at(day * 86_400 + hour * 3_600 + minute * 60)


def attempt_rows(deeds, subscriber):
    return [
        {
            "id": f"{subscriber}-{n}-{i}", "subscriber": subscriber, "events": events,
            "finished_at": when(day, hour), "age_ms": age_ms,
            "outcome": "delivered" if i >= failing else ("failed", "gone", "throttled")[i % 3],
        }
        for n, (day, hour, tries, failing, events, age_ms) in enumerate(deeds)
        for i in range(tries)
    ]  # fmt: skip


def publish_rows(deeds, topic):
    return [
        {"topic": topic, "minute": when(day, hour), "events": tries * events}
        for day, hour, tries, _, events, _ in deeds
    ]


def gauge_rows(deeds, subscriber):
    return [
        {"subscriber": subscriber, "taken_at": when(day, hour), "value": float(tries * events)}
        for day, hour, tries, _, events, _ in deeds
    ]


def looks(looked):
    return [
        {"subscriber": None, "name": "workers", "taken_at": when(n // 3, n % 3, minute)}
        for n, minutes in enumerate(looked)
        for minute in minutes
    ]


def in_time(rows, time):
    end = DAY + timedelta(days=1)
    first = DAY - timedelta(days=DAYS)
    return [row for row in rows if first <= row[time].date() < end]


def measured(attempts, publishes, gauges):
    """(kind, name, measure) -> {hour: value}"""
    found: dict[Any, dict[Any, float]] = {}

    def say(kind, name, measure, hour, value, weight):
        if weight >= MEASURES[measure].least_weight:
            found.setdefault((kind, name, measure), {})[hour] = float(value)

    keyed = [{**row, "hour": start_of(row["finished_at"])} for row in attempts]
    for (name, hour), mine in by(keyed, "subscriber", "hour").items():
        done = [row for row in mine if row["outcome"] == "delivered"]
        failed = sum(row["outcome"] in ("failed", "gone") for row in mine)
        say("subscriber", name, "events", hour, sum(row["events"] for row in done), len(mine))
        say("subscriber", name, "failure_rate", hour, failed / len(mine), len(mine))
        if done:
            latency = fmean(row["age_ms"] for row in done) / 1_000
            say("subscriber", name, "latency_seconds", hour, latency, len(done))
    keyed = [{**row, "hour": start_of(row["minute"])} for row in publishes]
    for (name, hour), mine in by(keyed, "topic", "hour").items():
        events = sum(row["events"] for row in mine)
        say("topic", name, "events", hour, events, events)
    keyed = [{**row, "hour": start_of(row["taken_at"])} for row in gauges if row["subscriber"]]
    for (name, hour), mine in by(keyed, "subscriber", "hour").items():
        say("subscriber", name, "backlog", hour, max(row["value"] for row in mine), len(mine))
    return found


def whole_hours(gauges):
    minutes: dict[Any, list[int]] = {}
    for row in gauges:
        minutes.setdefault(start_of(row["taken_at"]), []).append(row["taken_at"].minute)
    return {hour for hour, seen in minutes.items() if min(seen) < 15 and max(seen) >= 45}


def histories(values, is_count, whole):
    """hour of the day -> (value on the day or None, values on earlier days)"""
    if is_count:
        values = {hour: value for hour, value in values.items() if hour in whole}
    found = {}
    for of_day in {hour.hour for hour in values}:
        first = min(values)
        same = [hour for hour in values if hour.hour == of_day]
        if is_count:
            same = list({*same, *(h for h in whole if h.hour == of_day and h >= first)})
        today = [values.get(hour, 0.0) for hour in same if hour.date() == DAY]
        # Silence on the day itself is known also of a series that begins... on no later hour.
        if is_count and not today and any(h.hour == of_day and h.date() == DAY for h in whole):
            today = [0.0]
        earlier = [values.get(hour, 0.0) for hour in same if hour.date() < DAY]
        found[of_day] = (today[0] if today else None, earlier)
    return found


def expected_hours(attempts, publishes, gauges):
    rows = []
    whole = whole_hours(gauges)
    for (kind, name, measure), values in measured(attempts, publishes, gauges).items():
        rule = MEASURES[measure]
        past = histories(values, rule.is_count, whole)
        usual = {hour: median(known) for hour, (_, known) in past.items() if known}
        spread = {
            hour: NORMAL * median(abs(value - usual[hour]) for value in past[hour][1])
            for hour in usual
        }
        shares = [spread[hour] / usual[hour] for hour in usual if usual[hour] > 0]
        pooled = fmean(shares) if shares else 0.0
        for hour, (value, known) in past.items():
            if value is None:
                continue
            row: dict[str, Any] = {"kind": kind, "name": name, "measure": measure}
            row |= {"hour": when(DAYS, hour, 0), "value": value, "days": len(known)}
            row |= dict.fromkeys(("usual", "spread", "deviation", "direction"))
            row["days_as_far"] = 0
            if known:
                change = value - usual[hour]
                wide = max(spread[hour], pooled * usual[hour])
                least = max(wide, rule.least_spread, 0.1 * abs(usual[hour]))
                row |= {"usual": usual[hour], "spread": wide, "deviation": abs(change) / least}
                row["direction"] = "up" if change >= 0 else "down"
                sign = 1 if change > 0 else -1
                as_far = [v for v in known if (v - usual[hour]) * sign >= abs(change) / 2]
                row["days_as_far"] = len(as_far) if change else 0
            rows.append(row)
    return rows


def expected_alarms(measured_hours, min_days, least_deviation):
    found: list[dict[str, Any]] = []
    for series in by(measured_hours, "kind", "name", "measure").values():
        for row in sorted(series, key=lambda row: (row["direction"] or "", row["hour"])):
            rule = MEASURES[row["measure"]]
            if row["days"] < min_days:
                continue
            low, high = sorted((row["value"], row["usual"]))
            silence = row["direction"] == "down" and row["value"] == 0
            alarming = (
                row["deviation"] >= least_deviation / (2 if silence else 1)
                and high - low >= rule.least_change
                and high >= rule.least_factor * low
                and row["days_as_far"] <= row["days"] // 10
                and (row["direction"] == "up" or rule.is_count)
            )
            if not alarming:
                continue
            keys = ("kind", "name", "measure", "direction")
            last = found[-1] if found else {}
            if [last.get(k) for k in keys] != [row[k] for k in keys] or last["until"] != row[
                "hour"
            ]:
                last = {k: row[k] for k in keys} | {"since": row["hour"], "worst": row}
                last["hours"] = 0
                found.append(last)
            last["hours"] += 1
            last["until"] = row["hour"] + HOUR
            last["worst"] = max(last["worst"], row, key=lambda r: (r["deviation"], r["hour"]))
    for alarm in found:
        worst = alarm.pop("worst")
        names = ("value", "usual", "spread", "deviation", "days", "days_as_far")
        alarm |= {"at": worst["hour"]} | {name: worst[name] for name in names}
        silence = alarm["direction"] == "down" and alarm["value"] == 0
        critical = silence or alarm["deviation"] >= 2 * least_deviation
        alarm["severity"] = "critical" if critical else "warning"
    return found


@few_questions
@given(cases(DEEDS, 12), LOOKED)
def test_every_number_of_the_evidence_is_that_of_the_same_hours_of_earlier_days(
    frame, deeds, looked
):
    attempts, publishes = all_of(attempt_rows, deeds), all_of(publish_rows, deeds)
    gauges = all_of(gauge_rows, deeds) + looks(looked)
    frames = frame(ATTEMPTS, attempts), frame(PUBLISHES, publishes), frame(GAUGES, gauges)

    found = rows_of(hours(*frames, DAY, days=DAYS))
    raised = rows_of(alarms(*frames, DAY, days=DAYS, min_days=3, least_deviation=2.0))

    expected = expected_hours(
        in_time(attempts, "finished_at"), in_time(publishes, "minute"), in_time(gauges, "taken_at")
    )
    assert_same(found, expected, "kind", "name", "measure", "hour")
    alarming = expected_alarms(found, 3, 2.0)
    assert_same(raised, alarming, "kind", "name", "measure", "direction", "since")


def bus_of(frame, published, day_count=DAYS + 1) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Topics and their events in three hours of each day, exported without a gap."""
    gauges = looks([(0, 55)] * 3 * day_count)
    rows = [
        {"topic": topic, "minute": when(day, hour), "events": events}
        for topic, of_day in published.items()
        for day in range(day_count)
        for hour in range(3)
        if (events := of_day(day, hour))
    ]
    return frame(ATTEMPTS, []), frame(PUBLISHES, rows), frame(GAUGES, gauges)


def test_a_spike_and_a_silence_are_told_with_their_evidence_and_what_is_usual_is_not(frame):
    frames = bus_of(
        frame,
        {
            "spike": lambda day, hour: 9_000 if (day, hour) >= (DAYS, 1) else 1_000 + day,
            "silent": lambda day, hour: 0 if (day, hour) == (DAYS, 2) else 1_000 + day,
            "steady": lambda day, hour: 1_000 + 50 * (day % 3),
            "quiet": lambda day, hour: 0 if day == DAYS else 20,
            "new": lambda day, hour: 5_000 if day == DAYS else 0,
            "every other day": lambda day, hour: 9_000 if day % 2 else 1_000,
        },
    )

    found = {row["name"]: row for row in rows_of(alarms(*frames, DAY))}

    assert found.keys() == {"spike", "silent"}
    spike, silent = found["spike"], found["silent"]
    assert (spike["since"], spike["until"], spike["hours"]) == (
        when(DAYS, 1, 0),
        when(DAYS, 3, 0),
        2,
    )
    assert (spike["usual"], spike["value"], spike["direction"]) == (1_004.0, 9_000.0, "up")
    assert (spike["days"], spike["days_as_far"], spike["severity"]) == (DAYS, 0, "critical")
    assert (silent["value"], silent["direction"], silent["severity"]) == (0.0, "down", "critical")


def test_too_few_earlier_days_raise_no_alarm_and_an_hour_without_export_is_no_silence(frame):
    steady = bus_of(frame, {"orders": lambda day, hour: 1_000 if day < DAYS else 0}, DAYS)
    sudden = bus_of(frame, {"orders": lambda day, hour: 9_000 if day == DAYS else 1_000})

    assert rows_of(alarms(*steady, DAY)) == []
    assert rows_of(alarms(*sudden, DAY, days=3)) == []

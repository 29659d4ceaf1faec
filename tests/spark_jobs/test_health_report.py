"""Outages, health over time and the ranking are those of a plain reading of the same rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routemaster.domain.datasets import ATTEMPTS, GAUGES, HEALTH
from spark_jobs.health_report import main, report
from spark_jobs.outages import find_outages
from spark_jobs.trajectory import by_period
from tests.spark_jobs import cases
from tests.spark_jobs.cases import differences
from tests.spark_jobs.rows import Row, at, attempt_row, export_file, row

BAD = ("failed", "gone")
STEP = timedelta(seconds=10)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def by_subscriber(rows):
    found = defaultdict(list)
    for one in rows:
        found[one["subscriber"]].append(one)
    return found


def steps_of(attempts):
    steps = defaultdict(list)
    for one in attempts:
        steps[(one["finished_at"] - EPOCH) // STEP].append(one)
    return [steps[key] for key in sorted(steps)]


def oracle_outages(attempts, gauges):
    last = max((one["finished_at"] for one in attempts), default=None)
    found = {}
    for subscriber, own in by_subscriber(attempts).items():
        run: list[dict[str, object]] = []
        for step in [*steps_of(own), None]:
            delivered = [one for one in step or [] if one["outcome"] == "delivered"]
            if step is not None and not delivered:
                run += [one for one in step if one["outcome"] in BAD]
                continue
            if len(run) >= 3:
                end = min((one["finished_at"] for one in delivered), default=None)
                outage = oracle_outage(run, end, last, own, gauges)
                found[subscriber, outage["started_at"]] = outage
            run = []
    return found


def oracle_outage(run, end, last, own, gauges):
    start = min(one["started_at"] for one in run)
    errors = Counter(one["error"] for one in run)
    waited = [
        one
        for one in own
        if end and one["outcome"] == "delivered" and one["created_at"] < end <= one["finished_at"]
    ]
    drained = max((one["finished_at"] for one in waited), default=None)
    until = drained or end
    queued = [
        one["value"]
        for one in gauges
        if one["name"] == "events.queued" and one["subscriber"] == run[0]["subscriber"]
        and start <= one["taken_at"] and (until is None or one["taken_at"] <= until)
    ]  # fmt: skip
    return {
        "started_at": start,
        "ended_at": end,
        "seconds": ((end or last) - start).total_seconds(),
        "failures": len(run),
        "error": min(errors, key=lambda error: (-errors[error], error)),
        "events_waited": sum(one["events"] for one in waited),
        "drained_at": drained,
        "recovery_seconds": (drained - end).total_seconds() if drained else None,
        "most_queued": max(queued, default=None),
    }


def held(health):
    found = []
    for subscriber, own in by_subscriber(health).items():
        snapshots = defaultdict(list)
        for one in own:
            snapshots[one["taken_at"]].append(one["health_points"])
        times = sorted(snapshots)
        for time, following in zip(times, [*times[1:], None], strict=True):
            seconds = min(300.0, (following - time).total_seconds()) if following else 0.0
            found.append((subscriber, time, min(snapshots[time]), seconds))
    return found


def oracle_trajectory(health):
    periods = defaultdict(list)
    for subscriber, time, points, seconds in held(health):
        hour = time.replace(minute=0, second=0, microsecond=0)
        periods[subscriber, hour].append((time, points, seconds))
    found = {}
    for key, own in periods.items():
        whole = sum(seconds for _, _, seconds in own)
        weighted = sum(points * seconds for _, points, seconds in own)
        plain = sum(points for _, points, _ in own) / len(own)
        found[key] = {
            "least_points": min(points for _, points, _ in own),
            "mean_points": weighted / whole if whole else plain,
            "last_points": max(own)[1],
        }
    return found


def oracle_ranking(attempts, health, outages):
    """What the ranking adds up; not its words."""
    own_attempts = by_subscriber(attempts)
    snapshots = held(health)
    found = {}
    for name in own_attempts.keys() | {one[0] for one in snapshots}:
        own = own_attempts.get(name, [])
        out = [one for (subscriber, _), one in outages.items() if subscriber == name]
        seconds = [(points, length) for who, _, points, length in snapshots if who == name]
        ok = [one["finished_at"] for one in own if one["outcome"] == "delivered"]
        found[name] = {
            "attempts": sum(one["outcome"] in ("delivered", *BAD) for one in own),
            "failed": sum(one["outcome"] in BAD for one in own),
            "outages": len(out),
            "out_seconds": sum(one["seconds"] for one in out),
            "longest_outage_seconds": max((one["seconds"] for one in out), default=0),
            "events_waited": sum(one["events_waited"] for one in out),
            "most_runs_an_hour": most_turns(own),
            "last_delivered_at": max(ok, default=None),
            "seconds_observed": sum(length for _, length in seconds),
            "seconds_below_80": sum(length for points, length in seconds if points < 80),
            "seconds_below_50": sum(length for points, length in seconds if points < 50),
        }
    return found


def most_turns(attempts):
    turns: Counter[int] = Counter()
    before = False
    for step in steps_of(attempts):
        outcomes = {one["outcome"] for one in step}
        if not outcomes - {"throttled"}:
            continue
        is_ok = "delivered" in outcomes
        turns[(step[0]["finished_at"] - EPOCH) // timedelta(hours=1)] += before and not is_ok
        before = is_ok
    return max(turns.values(), default=0)


def rows_of(table, *key):
    found = {}
    for one in table.toArrow().to_pylist():
        place = tuple(one.pop(name) for name in key)
        assert place not in found
        found[place if len(key) > 1 else place[0]] = one
    return found


def gauges_of(attempts):
    return [
        row(GAUGES, subscriber=one["subscriber"], taken_at=one["started_at"], value=float(number))
        for number, one in enumerate(attempts)
    ]


@pytest.mark.slow
@cases.FEW
@given(data=st.data())
def test_every_number_is_the_oracles(frame, data):
    attempts = cases.drawn(cases.attempts, 40, data.draw)
    health = cases.drawn(cases.health, 40, data.draw)
    gauges = gauges_of(attempts)
    frames = frame(ATTEMPTS, attempts), frame(HEALTH, health), frame(GAUGES, gauges)
    outages = oracle_outages(attempts, gauges)

    made = rows_of(find_outages(frames[0], frames[2]), "subscriber", "started_at")
    assert made.keys() == outages.keys()
    for key, expected in outages.items():
        assert differences({"started_at": key[1]} | made[key], expected) == {}, key

    made = rows_of(by_period(frames[1], "hour"), "subscriber", "period")
    assert made.keys() == oracle_trajectory(health).keys()
    for key, expected in oracle_trajectory(health).items():
        assert differences(made[key], expected) == {}, key

    made = rows_of(report(*frames), "subscriber")
    wanted = oracle_ranking(attempts, health, outages)
    assert made.keys() == wanted.keys()
    for key, expected in wanted.items():
        assert differences({name: made[key][name] for name in expected}, expected) == {}, key
    in_order = sorted(made, key=lambda name: (made[name]["score"], name))
    assert [made[name]["rank"] for name in in_order] == list(range(1, len(made) + 1))


def story():
    """steady delivers; broken fails from 03:10 on; flaky turns six times; sleepy answered 410."""
    attempts: list[Row] = []

    def tried(subscriber, time, outcome="delivered", error="", status=200):
        attempts.append(
            attempt_row(
                ATTEMPTS, at(time), 0, 50, id=f"{len(attempts)}-0", subscriber=subscriber,
                outcome=outcome, error=error, http_status=status,
            )
        )  # fmt: skip

    for minute in range(60):
        tried("steady", f"03:{minute:02}")
        tried("broken", f"03:{minute:02}", *(() if minute < 10 else ("failed", "timeout", 0)))
        tried("flaky", f"03:{minute:02}", *(() if minute // 5 % 2 else ("failed", "http_500", 500)))
    tried("broken", "1 03:15", "failed", "timeout", 0)
    tried("sleepy", "03:00", "gone", "http_410", 410)
    health = [
        row(HEALTH, subscriber=name, state=state, taken_at=at("03:30"), health_points=points)
        for name, state, points in (
            ("steady", "active", 100), ("broken", "active", 0), ("sleepy", "disabled", 98),
        )
    ]  # fmt: skip
    return attempts, health


def test_the_ranking_says_who_is_ill_and_why(frame):
    attempts, health = story()
    frames = frame(ATTEMPTS, attempts), frame(HEALTH, health), frame(GAUGES, [])
    made = rows_of(report(*frames), "subscriber")
    assert {name: one["is_dead"] for name, one in made.items()} == {
        "steady": False, "broken": True, "flaky": False, "sleepy": True,
    }  # fmt: skip
    assert [name for name, one in made.items() if one["is_flapping"]] == ["flaky"]
    assert (made["steady"]["score"], made["steady"]["reasons"]) == (100.0, [])
    assert made["broken"]["reasons"][:2] == [
        "nothing delivered since 2026-03-02 03:09", "83.6 % of 61 attempts failed",
    ]  # fmt: skip
    assert made["sleepy"]["reasons"][0] == "it is disabled: it answered 410"
    assert made["steady"]["rank"] == 4


def test_an_outage_is_told_with_what_waited_for_its_end(frame):
    attempts = [
        attempt_row(ATTEMPTS, at("03:00"), 0, 50, id="0-0", batch="a"),
        *(
            attempt_row(
                ATTEMPTS, at("03:10"), 60_000 * n, 50, id=f"{n}-1", batch="b", attempt=n + 1,
                outcome="failed", error="refused", http_status=0,
            )
            for n in range(4)
        ),
        attempt_row(ATTEMPTS, at("03:10"), 600_000, 50, id="5-0", batch="b", events=30),
        attempt_row(ATTEMPTS, at("03:11"), 560_000, 50, id="6-0", batch="c", events=12),
        attempt_row(ATTEMPTS, at("03:30"), 0, 50, id="7-0", batch="d", events=99),
    ]  # fmt: skip
    gauges = [row(GAUGES, taken_at=at(f"03:{n}"), value=float(n)) for n in (10, 12, 20, 29)]
    (one,) = find_outages(frame(ATTEMPTS, attempts), frame(GAUGES, gauges)).toArrow().to_pylist()
    assert one == {
        "subscriber": "mailer", "started_at": at("03:10"), "ended_at": at("03:20:00.050"),
        "seconds": 600.05, "failures": 4, "error": "refused", "events_waited": 42,
        "drained_at": at("03:20:20.050"), "recovery_seconds": 20.0, "most_queued": 20.0,
    }  # fmt: skip


def test_nothing_exported_is_no_rows(frame):
    nothing = frame(ATTEMPTS, []), frame(HEALTH, []), frame(GAUGES, [])
    assert report(*nothing).toArrow().num_rows == 0


def test_a_table_is_written_from_files(spark, tmp_path):
    attempts, health = story()
    export_file(tmp_path / "export", ATTEMPTS, attempts)
    export_file(tmp_path / "export", HEALTH, health, "part-1-1.jsonl")
    out = str(tmp_path / "report")
    assert main(["--input", str(tmp_path / "export"), "--output", out]) == 0
    assert [one.subscriber for one in spark.read.parquet(out).orderBy("rank").collect()] == [
        "broken", "sleepy", "flaky", "steady",
    ]  # fmt: skip

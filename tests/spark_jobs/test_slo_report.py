from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routemaster.domain.datasets import ATTEMPTS, DROPS
from spark_jobs.objectives import Objective, Objectives
from spark_jobs.slo_report import FATES, WINDOWS, attainment, spending
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

UNTIL = at(8 * 3_600)
OBJECTIVES = Objectives(
    Objective(90.0, 5.0),
    (Objective(50.0, 60.0, "s1*"), Objective(99.9, 1.0, "s?7"), Objective(75.0, 0.5, "s07")),
)
# A batch: when it began, its events, how long each try came after (the last may be delivered),
# and whether it was given up.
BATCHES = st.lists(
    st.tuples(
        st.integers(0, 7 * 3_600),
        st.integers(1, 20),
        st.lists(st.sampled_from([0, 400, 1_000, 5_000, 5_001, 60_000, 900_000]), max_size=4),
        st.sampled_from(["delivered", "failed", "throttled", "gone"]),
        st.sampled_from([False, False, True]),
    ),
    max_size=6,
)  # fmt: skip


def attempt_rows(batches, subscriber):
    rows: list[dict[str, Any]] = []
    for number, (began, events, waits, outcome, _) in enumerate(batches):
        age_ms = 0
        for tried, wait_ms in enumerate(waits, 1):
            age_ms += wait_ms
            ended = outcome if tried == len(waits) else "failed"
            rows.append(
                {
                    "id": f"{subscriber}-{len(rows)}",
                    "subscriber": subscriber,
                    "batch": f"{subscriber}-b{number}",
                    "attempt": tried,
                    "events": events,
                    "finished_at": at(began + age_ms / 1_000),
                    "age_ms": age_ms,
                    "outcome": ended,
                }
            )
    return rows


def drop_rows(batches, subscriber):
    return [
        {
            "id": f"{subscriber}-d{number}",
            "subscriber": subscriber,
            "batch": f"{subscriber}-b{number}",
            "events": events,
            "dropped_at": at(began + 3_000),
        }
        for number, (began, events, waits, outcome, given_up) in enumerate(batches)
        if given_up and not (waits and outcome == "delivered")
    ]


def objective_of(subscriber: str) -> Objective:
    fitting = (o for o in OBJECTIVES.overrides if fnmatchcase(subscriber, o.subscriber))
    return next(fitting, OBJECTIVES.default)


def fates_of(attempts, drops):
    """(subscriber, time, fate, events) of every batch whose fate is known."""
    found = [(row["subscriber"], row["dropped_at"], "dropped", row["events"]) for row in drops]
    given_up = {row["batch"] for row in drops}
    for (subscriber, batch), tries in by(attempts, "subscriber", "batch").items():
        within_ms = objective_of(subscriber).within_seconds * 1_000
        done = [row for row in tries if row["outcome"] == "delivered"]
        for row in done:
            fate = "good" if row["age_ms"] <= within_ms else "late"
            found.append((subscriber, row["finished_at"], fate, row["events"]))
        last = max(tries, key=lambda row: row["finished_at"])
        if not done and batch not in given_up and last["age_ms"] > within_ms:
            found.append((subscriber, last["finished_at"], "overdue", last["events"]))
    return found


def expected_attainment(attempts, drops):
    rows = []
    known = [fate for fate in fates_of(attempts, drops) if fate[1] < UNTIL]
    for window, length in WINDOWS.items():
        sums: dict[str, dict[str, int]] = {}
        for subscriber, time, fate, events in known:
            if length is None or time >= UNTIL - length:
                mine = sums.setdefault(subscriber, dict.fromkeys(FATES, 0))
                mine[fate] += events
        of_window: list[dict[str, Any]] = []
        for subscriber, mine in sums.items():
            objective = objective_of(subscriber)
            events = sum(mine.values())
            budget = events * (1 - objective.target_percent / 100)
            bad = events - mine["good"]
            percent = 100 * mine["good"] / events
            of_window.append(
                {
                    "subscriber": subscriber,
                    "window": window,
                    "until": UNTIL,
                    "target_percent": objective.target_percent,
                    "within_seconds": objective.within_seconds,
                    "events": events,
                    **mine,
                    "attainment_percent": percent,
                    "met": percent >= objective.target_percent,
                    "budget_events": budget,
                    "budget_left": 1 - bad / budget,
                    "burn_rate": bad / budget,
                    "_overdrawn": float(bad - budget),
                }
            )
        of_window.sort(key=lambda row: (-row["_overdrawn"], row["subscriber"]))
        for worst, row in enumerate(of_window, 1):
            del row["_overdrawn"]
            rows.append({**row, "worst": worst})
    return rows


@few_questions
@given(cases(BATCHES))
def test_attainment_and_burn_rates_are_what_the_batches_came_to(frame, batches):
    attempts, drops = all_of(attempt_rows, batches), all_of(drop_rows, batches)

    found = attainment(frame(ATTEMPTS, attempts), frame(DROPS, drops), OBJECTIVES, UNTIL)

    assert_same(rows_of(found), expected_attainment(attempts, drops), "subscriber", "window")


@few_questions
@given(cases(BATCHES), st.sampled_from(["hour", "day"]))
def test_the_budget_is_spent_in_the_hours_in_which_events_missed_it(frame, batches, bucket):
    attempts, drops = all_of(attempt_rows, batches), all_of(drop_rows, batches)

    found = rows_of(spending(frame(ATTEMPTS, attempts), frame(DROPS, drops), OBJECTIVES, bucket))

    cells: dict[Any, list[int]] = {}
    whole: dict[str, int] = {}
    for subscriber, time, fate, events in fates_of(attempts, drops):
        cell = cells.setdefault((subscriber, start_of(time, bucket)), [0, 0])
        cell[fate != "good"] += events
        whole[subscriber] = whole.get(subscriber, 0) + events
    expected = [
        {
            "subscriber": subscriber,
            "start": start,
            "events": good + bad,
            "good": good,
            "bad": bad,
            "budget_spent": bad
            / (whole[subscriber] * (1 - objective_of(subscriber).target_percent / 100)),
        }
        for (subscriber, start), (good, bad) in cells.items()
    ]
    assert_same(found, expected, "subscriber", "start")


def test_who_is_never_delivered_to_does_not_attain_a_hundred_percent(frame):
    tries = [
        {"id": f"{n}", "attempt": n, "outcome": "failed", "events": 4, "age_ms": n * 4_000,
         "finished_at": at(n * 4)}
        for n in (1, 2, 3)
    ]  # fmt: skip

    (row,) = [
        row
        for row in rows_of(
            attainment(frame(ATTEMPTS, tries), frame(DROPS, []), Objectives(), UNTIL)
        )
        if row["window"] == "whole"
    ]

    assert (row["attainment_percent"], row["overdue"], row["met"]) == (0.0, 4, False)
    assert row["burn_rate"] == pytest.approx(1_000)


def test_without_events_nobody_attains_anything(frame):
    nothing = frame(ATTEMPTS, []), frame(DROPS, [])

    assert rows_of(attainment(*nothing, Objectives(), UNTIL)) == []
    assert rows_of(spending(*nothing, Objectives())) == []

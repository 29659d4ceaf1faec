"""Many small random exports in one DataFrame: one Spark job checks them all.

A case is a subscriber's name in front: no report mixes subscribers, so that cases do not meet.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from routemaster.domain.datasets import ATTEMPTS, COUNTERS, HEALTH
from tests.spark_jobs.rows import START, Row, row

# An example is many cases and one Spark job. Not made smaller when it fails: that takes hundreds
# of jobs, and the message names the case.
FEW = settings(
    max_examples=2,  # the first one is always the least there is: no rows at all
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    print_blob=True,
    database=None,
)
OUTCOMES = ("delivered", "failed", "throttled", "gone")
ERRORS = {"delivered": [("", 200), ("", 204)], "gone": [("http_410", 410)]}
OTHERS = [("timeout", 0), ("http_500", 500), ("dns", 0), ("http_429", 429)]
COUNTERS_OF = (
    ("events.delivered", None), ("delivery.time", None), ("delivery.time2", None),
    *(("delivery.attempts", outcome) for outcome in OUTCOMES),
)  # fmt: skip


@st.composite
def attempts(draw: st.DrawFn, subscriber: str) -> list[Row]:
    """Clocks that differ (negative waits), ties, empty lists, long gaps, any order."""
    found = []
    for number in range(draw(st.integers(0, 25))):
        outcome = draw(st.sampled_from(OUTCOMES))
        error, status = draw(st.sampled_from(ERRORS.get(outcome, OTHERS)))
        minutes = draw(st.sampled_from([0, 1, 59, 60, 61, 1439, 1440, 1500]))
        finished = START + timedelta(minutes=minutes, milliseconds=draw(st.integers(0, 50_000)))
        took = draw(st.one_of(st.integers(0, 5), st.integers(0, 20_000)))
        wait = draw(st.one_of(st.integers(-50, 50), st.integers(0, 4_000_000)))
        started = finished - timedelta(milliseconds=took)
        found.append(
            row(
                ATTEMPTS, id=f"{subscriber}-{number}", subscriber=subscriber, outcome=outcome,
                batch=f"{subscriber}-b{draw(st.integers(0, 9))}", error=error, http_status=status,
                attempt=draw(st.integers(1, 3)), events=draw(st.integers(1, 100)),
                created_at=started - timedelta(milliseconds=wait), started_at=started,
                finished_at=finished, took_ms=took, age_ms=wait + took,
            )
        )  # fmt: skip
    return found


@st.composite
def counters(draw: st.DrawFn, subscriber: str) -> list[Row]:
    """Each epoch begins anew, at any value; snapshots come twice, late, or not at all."""
    found: list[Row] = []
    minute = 0
    for epoch in range(draw(st.integers(0, 3))):
        values = {series: draw(st.integers(0, 1000)) for series in COUNTERS_OF}
        for _ in range(draw(st.integers(1, 5))):
            minute += draw(st.sampled_from([1, 10, 30, 60, 200, 1440]))
            for series in values:
                values[series] += draw(st.integers(0, 50))
            for (name, outcome), value in values.items():
                found.append(
                    row(
                        COUNTERS, taken_at=START + timedelta(minutes=minute),
                        epoch=f"e{epoch}", name=name, outcome=outcome, subscriber=subscriber,
                        value=value,
                    )
                )  # fmt: skip
    doubled = draw(st.lists(st.sampled_from(found), max_size=5)) if found else []
    return draw(st.permutations([*found, *doubled]))


@st.composite
def health(draw: st.DrawFn, subscriber: str) -> list[Row]:
    found: list[Row] = []
    second = 0
    for _ in range(draw(st.integers(0, 15))):
        second += draw(st.sampled_from([10, 60, 60, 300, 301, 4000, 90_000]))
        found.append(
            row(
                HEALTH, subscriber=subscriber, taken_at=START + timedelta(seconds=second),
                health_points=draw(st.integers(0, 100)),
                state=draw(st.sampled_from(["active", "active", "paused", "disabled"])),
            )
        )  # fmt: skip
    doubled = draw(st.lists(st.sampled_from(found), max_size=3)) if found else []
    return draw(st.permutations([*found, *doubled]))


def drawn(strategy: Any, count: int, draw: st.DrawFn) -> list[Row]:
    return [one for number in range(count) for one in draw(strategy(f"s{number:03}"))]


def differences(made: dict[str, Any], wanted: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What is not the same, name by name; numbers may differ by what adding up in another order
    makes of them."""
    found = {}
    for name in made.keys() | wanted.keys():
        one, other = made.get(name, "no such"), wanted.get(name, "no such")
        numbers = isinstance(one, int | float) and isinstance(other, int | float)
        if not (math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6) if numbers else one == other):
            found[name] = (one, other)
    return found

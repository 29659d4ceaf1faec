from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routemaster.domain.backoff import JITTER, LEAST_MS, delay_ms

# No clock decides here: the machine may be busy.
PATIENT = settings(deadline=None)

MAX_MS = 60_000
HEALTH = st.integers(0, 100) | st.integers(97, 100)  # where doubling goes furthest
FAILURES = st.integers(1, 25) | st.integers(1, 10**9)
MAXIMA = st.integers(LEAST_MS, 10**8)


class Loaded(random.Random):
    """Dice that always show the same."""

    def __init__(self, shows: float) -> None:
        super().__init__()
        self.shows = shows

    def random(self) -> float:
        return self.shows


LOWEST, HIGHEST = Loaded(0.0), Loaded(1 - 2**-53)


@pytest.mark.parametrize(
    "health, failures, wait_ms",
    [
        (100, 1, 100),  # the least
        (98, 1, 100),  # 60 s * 0.02^2 is 24 ms
        (90, 1, 600),
        (50, 1, 15_000),
        (50, 2, 30_000),
        (50, 3, 60_000),
        (50, 4, 60_000),
        (0, 1, 60_000),
        (100, 2, 200),
        (100, 5, 1_600),
        (100, 10, 51_200),
        (100, 11, 60_000),
    ],
)
def test_the_formula(health, failures, wait_ms):
    assert delay_ms(health, failures, MAX_MS, LOWEST) == wait_ms


@PATIENT
@given(HEALTH, FAILURES, MAXIMA, st.integers())
def test_it_is_bounded_below_and_above(health, failures, max_ms, seed):
    wait_ms = delay_ms(health, failures, max_ms, random.Random(seed))
    assert LEAST_MS <= wait_ms <= round(max_ms * (1 + JITTER))


@PATIENT
@given(HEALTH, FAILURES, MAXIMA)
def test_each_failure_doubles_until_the_maximum(health, failures, max_ms):
    once = delay_ms(health, failures, max_ms, LOWEST)
    again = delay_ms(health, failures + 1, max_ms, LOWEST)
    assert again in range(min(max_ms, 2 * once - 1), min(max_ms, 2 * once + 1) + 1)


@PATIENT
@given(st.integers(0, 99), FAILURES, MAXIMA)
def test_the_healthier_never_waits_longer(health, failures, max_ms):
    sick = delay_ms(health, failures, max_ms, LOWEST)
    assert delay_ms(health + 1, failures, max_ms, LOWEST) <= sick


@PATIENT
@given(HEALTH, FAILURES, MAXIMA)
def test_the_dice_only_add_and_not_more_than_their_part(health, failures, max_ms):
    least = delay_ms(health, failures, max_ms, LOWEST)
    most = delay_ms(health, failures, max_ms, HIGHEST)
    assert least < most <= least * (1 + JITTER) + 1


def test_lanes_that_failed_together_do_not_come_back_together():
    dice = random.Random(1)
    waits = {delay_ms(0, 30, MAX_MS, dice) for _ in range(100)}
    assert len(waits) > 90


@pytest.mark.parametrize("failures", [-1, 0])
def test_no_failure_counts_as_one(failures):
    assert delay_ms(50, failures, MAX_MS, LOWEST) == delay_ms(50, 1, MAX_MS, LOWEST)


def test_a_maximum_below_the_least_is_the_maximum():
    assert delay_ms(0, 9, 10, LOWEST) == 10

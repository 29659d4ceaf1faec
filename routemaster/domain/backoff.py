"""How long a lane waits after a failed delivery."""

from __future__ import annotations

import random

LEAST_MS = 100
# Doubling more often than this only makes the number longer: the maximum is reached by then.
MOST_DOUBLINGS = 20
# Spread, so that lanes that failed together do not come back together.
JITTER = 0.25


def delay_ms(health_points: int, failures: int, max_backoff_ms: int, dice: random.Random) -> int:
    """`failures` in a row, with this one. A healthy subscriber is asked again soon, a sick one
    seldom; each failure in a row doubles the wait."""
    sickness = (1 - health_points / 100) ** 2
    base_ms = max(LEAST_MS, max_backoff_ms * sickness)
    doublings = min(max(0, failures - 1), MOST_DOUBLINGS)
    wait_ms = min(float(max_backoff_ms), base_ms * float(2**doublings))
    return round(wait_ms * (1 + JITTER * dice.random()))

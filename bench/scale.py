from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """How much to measure. Two neighbours in a round are compared, so rounds beat seconds."""

    rounds: int
    seconds: float
    warm_s: float
    processes: tuple[int, ...]
    fanouts: tuple[int, ...]
    bulks: tuple[int, ...]
    bulk_fanouts: tuple[int, ...]
    cost_calls: int
    slices: int
    slice_calls: int
    queued: int
    strangers: int
    connections: int = 32
    # A bulk keeps a thread of the server busy for long: more connections would only wait.
    bulk_connections: int = 8


FULL = Scale(
    rounds=5,
    seconds=1.2,
    warm_s=0.3,
    processes=(1, 2),
    fanouts=(1, 10, 100),
    bulks=(100, 1000),
    bulk_fanouts=(1, 10),
    cost_calls=2000,
    slices=15,
    slice_calls=200,
    queued=1_000_000,
    strangers=10_000,
)
QUICK = Scale(
    rounds=1,
    seconds=0.5,
    warm_s=0.2,
    processes=(1, 2),
    fanouts=(1, 10, 100),
    bulks=(100, 1000),
    bulk_fanouts=(1, 10),
    cost_calls=500,
    slices=7,
    slice_calls=100,
    queued=100_000,
    strangers=1_000,
)
# For the tests: every line of code runs, and the figures mean nothing.
TINY = Scale(
    rounds=1,
    seconds=0.05,
    warm_s=0.02,
    processes=(1,),
    fanouts=(1,),
    bulks=(1000,),
    bulk_fanouts=(1,),
    cost_calls=20,
    slices=1,
    slice_calls=10,
    queued=2_000,
    strangers=10,
    connections=4,
    bulk_connections=2,
)

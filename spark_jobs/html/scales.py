"""From values and times to pixels, and where the ticks are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

STEPS_MS = tuple(
    timedelta(**{unit: number}) / timedelta(milliseconds=1)
    for unit, number in (
        ("minutes", 5), ("minutes", 15), ("hours", 1), ("hours", 3), ("hours", 6), ("hours", 12),
        ("days", 1), ("days", 2), ("days", 7), ("days", 14), ("days", 28),
    )
)  # fmt: skip
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Scale:
    """`is_log` needs values above zero; what is smaller is drawn at the bottom."""

    low: float
    high: float
    start_px: float
    end_px: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.is_log:
            value, low, high = math.log10(max(value, low)), math.log10(low), math.log10(high)
        part = (value - low) / (high - low) if high > low else 0.0
        return self.start_px + max(0.0, min(1.0, part)) * (self.end_px - self.start_px)


def nice_ticks(high: float, most: int = 5) -> list[float]:
    """From zero to at least `high`, in steps of 1, 2 or 5."""
    if high <= 0:
        return [0.0, 1.0]
    raw = high / most
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * times for times in (1, 2, 5, 10) if raw <= power * times * 1.0001)
    return [step * n for n in range(math.ceil(high / step - 1e-9) + 1)]


def ticks_in(unit: float, high: float) -> list[float]:
    """Nice in that unit: mebibytes are not round in millions."""
    return [tick * unit for tick in nice_ticks(high / unit)]


def decades(low: float, high: float) -> list[float]:
    first = math.floor(math.log10(max(low, 1e-9)))
    last = max(first + 1, math.ceil(math.log10(max(high, 1e-9))))
    return [10.0**power for power in range(first, last + 1)]


def time_ticks(first_ms: int, last_ms: int, most: int) -> list[tuple[int, str]]:
    """Whole hours or days of UTC, as few as `most`."""
    span = max(1, last_ms - first_ms)
    step = int(next((s for s in STEPS_MS if span / s <= most), STEPS_MS[-1]))
    at = -(-first_ms // step) * step
    ticks = []
    while at <= last_ms:
        when = datetime.fromtimestamp(at / 1000, UTC)
        ticks.append(
            (at, f"{when:%a} {when.day} {when:%b}" if at % DAY_MS == 0 else f"{when:%H:%M}")
        )
        at += step
    return ticks


def millis_of(at: datetime) -> int:
    """Spark gives UTC times without a zone."""
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)

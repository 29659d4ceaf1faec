"""How numbers and times read. A dash stands for what is not known."""

from __future__ import annotations

from datetime import UTC, datetime

NONE = "–"
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400


def count(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def rate(value: float | None) -> str:
    """Per second."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    return f"{value:.2f}" if value < 1 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def percent(value: float | None) -> str:
    """Never 100 % when something failed."""
    if value is None:
        return NONE
    return "100 %" if value == 1 else f"{min(value * 100, 99.9):.1f} %"


def duration(ms: float | None) -> str:
    if ms is None:
        return NONE
    if ms < 1000:
        return f"{ms:.0f} ms"
    seconds = ms / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < MINUTE_S:
        return f"{whole} s"
    if whole < HOUR_S:
        return f"{whole // MINUTE_S} min {whole % MINUTE_S} s"
    if whole < DAY_S:
        return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S} min"
    return f"{whole // DAY_S} d {whole % DAY_S // HOUR_S} h"


def age(seconds: int) -> str:
    """Of what is only known by the second."""
    return duration(1000 * seconds) if seconds else "< 1 s"


def size(n_bytes: float | None) -> str:
    if n_bytes is None:
        return NONE
    for unit in ("B", "KiB", "MiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.2f} GiB"


def moment(ms: int | None) -> str:
    """In UTC; the page's script shows it in the reader's own time."""
    if not ms:
        return NONE
    return when(ms).strftime("%Y-%m-%d %H:%M:%S UTC")


def clock(ms: int) -> str:
    return when(ms).strftime("%H:%M")


def iso(ms: int) -> str:
    return when(ms).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03}Z"


def when(ms: int) -> datetime:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):  # a publisher's timestamp may be any number
        return datetime.fromtimestamp(0, UTC)


FILTERS = {f.__name__: f for f in (count, rate, percent, duration, age, size, moment, clock, iso)}

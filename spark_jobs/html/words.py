"""Numbers and times as people say them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
NONE = "\u2013"


def count(value: float | None) -> str:
    """12,400; from a hundred thousand on, 1.2M."""
    if value is None:
        return NONE
    if abs(value) < 100_000:
        return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"
    unit, letter = next(pair for pair in UNITS if abs(value) >= pair[0])
    return f"{value / unit:.3g}{letter}" if abs(value) < 1000 * unit else f"{value / unit:,.0f}T"


def exact(value: float | None) -> str:
    return NONE if value is None else f"{value:,.0f}"


def decimal(value: float | None, digits: int = 3) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"


def percent(share: float | None) -> str:
    """Never 100 % when something is missing."""
    if share is None:
        return NONE
    if 0.9999 <= share < 1:
        return "99.99%"
    if 0 < share < 0.0001:
        return "0.01%"
    return f"{share:.2%}" if share not in (0, 1) else f"{share:.0%}"


def size(value: float | None) -> str:
    if value is None:
        return NONE
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(value) >= unit:
            return (
                f"{value / unit:.3g} {name}"
                if abs(value) < 1000 * unit
                else f"{value / unit:,.0f} {name}"
            )
    return f"{value:.0f} B"


def millis(value: float | None) -> str:
    if value is None:
        return NONE
    if value < 1000:
        return f"{value:.0f} ms" if value >= 10 or value == int(value) else f"{value:.1f} ms"
    return duration(value / 1000)


def millis_tick(value: float | None) -> str:
    return NONE if value is None else f"{value:g} ms" if value < 1000 else f"{value / 1000:g} s"


def duration(seconds: float | None) -> str:
    """Two units at most: 1 h 15 min."""
    if seconds is None:
        return NONE
    if seconds < 60:
        return (
            f"{seconds:.0f} s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.1f} s"
        )
    whole = round(seconds)
    for unit, name, part, part_name in (
        (86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"),
    ):  # fmt: skip
        if whole >= unit:
            rest = whole % unit // part
            return (
                f"{whole // unit} {name} {rest} {part_name}" if rest else f"{whole // unit} {name}"
            )
    return f"{whole} s"


def clock(at: datetime) -> str:
    return f"{at:%H:%M}"


def moment(at: datetime | None) -> str:
    return NONE if at is None else f"{at:%a} {at.day} {at:%b %H:%M}"


def day(at: datetime) -> str:
    return f"{at:%a} {at.day} {at:%b}"


def span(start: datetime, end: datetime) -> str:
    """from Fri 13 Nov 03:10 to 04:25; names the day again only when it is another one."""
    until = clock(end) if end.date() == start.date() else moment(end)
    return f"from {moment(start)} to {until}"


def minutes_between(start: datetime, end: datetime) -> float:
    return (end - start) / timedelta(minutes=1)


def plural(number: float, one: str, many: str = "") -> str:
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def listed(names: list[str], most: int = 3) -> str:
    """a, b and c; or a, b, c and 4 more."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def moment_ms(at_ms: int) -> str:
    return moment(datetime.fromtimestamp(at_ms / 1000, UTC))

"""From rows of the series to what a template draws: paths in a box of 1000 by 100, no styles.

The labels stand beside the box as text, so that they keep their size on any screen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from routemaster.store.series import MINUTE_MS, Minute

WIDTH, HEIGHT = 1000.0, 100.0
TICKS = 4
LABELS = 5
MOST_MISSED = 5

Value = float | None
Format = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class Window:
    key: str
    text: str
    minutes: int
    step: int  # minutes to a point

    @property
    def points(self) -> int:
        """One more than fit, so that the first and the last are the whole window apart."""
        return self.minutes // self.step + 1

    @property
    def rows(self) -> int:
        return self.points * self.step


WINDOWS = (
    Window("1h", "1 hour", 60, 1),
    Window("6h", "6 hours", 360, 5),
    Window("24h", "24 hours", 1440, 15),
)


def window_named(key: str) -> Window:
    return next((window for window in WINDOWS if window.key == key), WINDOWS[0])


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    mark: str  # its class: colour and dashes
    values: list[Value]
    path: str
    area: str


@dataclass(frozen=True, slots=True)
class Chart:
    id: str
    title: str
    lines: list[Line]
    ticks: list[str]  # from the top down
    times_ms: list[int]  # the end of each point
    texts: list[list[str]]  # of each point, for each line

    @property
    def is_empty(self) -> bool:
        return all(value is None for line in self.lines for value in line.values)

    @property
    def labels_ms(self) -> list[int]:
        last = len(self.times_ms) - 1
        return [self.times_ms[round(last * n / (LABELS - 1))] for n in range(LABELS)]

    @property
    def rows(self) -> list[tuple[int, list[str]]]:
        """For the table, the newest first."""
        return list(zip(self.times_ms, self.texts, strict=True))[::-1]


class Frame:
    """The points of one window that ends now; values are taken from rows into it."""

    def __init__(self, window: Window, now_ms: int) -> None:
        self.window = window
        # Of the point that is being filled; so points begin at round times.
        self._last = (now_ms // MINUTE_MS // window.step + 1) * window.step - 1
        self._first = self._last - window.rows + 1
        self.times_ms = [
            (self._first + (n + 1) * window.step) * MINUTE_MS for n in range(window.points)
        ]

    def sums(self, rows: Sequence[Minute], of: Callable[[Minute], float]) -> list[float]:
        """What it rose by in each point; a row that stands for many minutes is spread over them."""
        found = [0.0] * self.window.points
        for row in rows:
            each = of(row) / row.span
            for minute in range(row.minute - row.span + 1, row.minute + 1):
                place = self._place(minute)
                if place is not None:
                    found[place] += each
        return found

    def covered(self, rows: Sequence[Minute]) -> list[float]:
        """How many minutes of each point there are rows for."""
        return self.sums(rows, lambda row: row.span)

    def rates(self, rows: Sequence[Minute], of: Callable[[Minute], float]) -> list[Value]:
        """Per second."""
        return ratios(self.sums(rows, of), [60 * c for c in self.covered(rows)])

    def highest(self, rows: Sequence[Minute], gauge: int) -> list[Value]:
        found: list[Value] = [None] * self.window.points
        for row in rows:
            # A minute that was missed had most likely the same.
            span = row.span if row.span <= MOST_MISSED else 1
            for minute in range(row.minute - span + 1, row.minute + 1):
                place = self._place(minute)
                if place is not None and gauge < len(row.gauges):
                    found[place] = max(found[place] or 0, row.gauges[gauge])
        return found

    def _place(self, minute: int) -> int | None:
        if not self._first <= minute <= self._last:
            return None
        return (minute - self._first) // self.window.step


def ratios(above: Sequence[float], below: Sequence[float]) -> list[Value]:
    return [a / b if b else None for a, b in zip(above, below, strict=True)]


def chart(
    id_: str, title: str, frame: Frame, lines: Sequence[tuple[str, str, list[Value]]],
    text: Format, least: float = 1, base: float = 10,
) -> Chart:  # fmt: skip
    """`least` is the smallest top of the scale; its steps are 1, 2 or 5 times a power of `base`."""
    top = nice_top([v for _, _, values in lines for v in values if v is not None], least, base)
    return Chart(
        id=id_,
        title=title,
        lines=[
            Line(name, mark, values, path(values, top), area(values, top))
            for name, mark, values in lines
        ],
        ticks=[text(top * n / TICKS).replace(".0", "") for n in range(TICKS, -1, -1)],
        times_ms=frame.times_ms,
        texts=[[text(values[n]) for _, _, values in lines] for n in range(len(frame.times_ms))],
    )


def nice_top(values: Sequence[float], least: float, base: float = 10) -> float:
    highest = max([least, *values])
    power = base ** math.floor(math.log(highest / TICKS, base))
    while True:
        for factor in (1, 2, 2.5, 5) if base == 10 else (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
            if factor * power * TICKS >= highest:
                return float(factor * power * TICKS)
        power *= base


def path(values: Sequence[Value], top: float) -> str:
    """A point without value breaks the line; one alone is a dot."""
    return " ".join(
        "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in run) + ("h0.1" if len(run) == 1 else "")
        for run in runs(values, top)
    )


def area(values: Sequence[Value], top: float) -> str:
    return " ".join(
        f"M{run[0][0]:.1f} {HEIGHT:.0f} L"
        + " L".join(f"{x:.1f} {y:.1f}" for x, y in run)
        + f" L{run[-1][0]:.1f} {HEIGHT:.0f}Z"
        for run in runs(values, top)
    )


def runs(values: Sequence[Value], top: float) -> list[list[tuple[float, float]]]:
    found: list[list[tuple[float, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            found.append([])
        else:
            x = WIDTH * place / max(1, len(values) - 1)
            found[-1].append((x, HEIGHT - HEIGHT * min(value, top) / top))
    return [run for run in found if run]

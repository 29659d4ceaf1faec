"""Values over time: lines, with a band or without, and a sum under each other when stacked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from spark_jobs.html.markup import Safe, join, tag
from spark_jobs.html.scales import Scale, decades, ticks_in, time_ticks
from spark_jobs.html.words import count, moment

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 240, 64, 116, 12, 28
LABEL_PX = 15
# So many columns can be pointed at; more would be narrower than a pointer is exact.
MOST_COLUMNS = 220

Show = Callable[[float | None], str]


@dataclass(frozen=True, slots=True)
class Line:
    """`color` is 1 to 6. None is a gap. A `low` per point makes a band down to it."""

    name: str
    values: Sequence[float | None]
    color: int = 1
    low: Sequence[float | None] | None = None
    is_area: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A time span to look at, shaded."""

    from_ms: int
    to_ms: int
    text: str


def line_chart(
    label: str,
    times_ms: Sequence[int],
    lines: Sequence[Line],
    *,
    show: Show = count,
    show_tick: Show | None = None,
    is_log: bool = False,
    tick_unit: float = 1.0,
    marks: Sequence[Mark] = (),
    limit: tuple[float, str] | None = None,
) -> Safe:
    """`label` is what it shows, for who cannot see it. `limit` is drawn across."""
    known = [v for line in lines for v in (*line.values, *(line.low or ())) if v is not None]
    if limit:
        known.append(limit[0])
    if not times_ms or not known:
        return tag("p", "Nothing to draw.", class_="none")
    y_ticks = (
        decades(max(min(known), 1.0), max(known)) if is_log else ticks_in(tick_unit, max(known))
    )
    x = Scale(times_ms[0], max(times_ms[-1], times_ms[0] + 1), LEFT, WIDTH - RIGHT)
    y = Scale(y_ticks[0], y_ticks[-1], HEIGHT - BOTTOM, TOP, is_log)
    drawn = join(
        *(_grid(y(value), (show_tick or show)(value)) for value in y_ticks),
        *(_time(x(at), text) for at, text in time_ticks(times_ms[0], times_ms[-1], 8)),
        *(_mark(x, mark) for mark in marks),
        _limit(y, limit),
        *(_line(x, y, times_ms, line) for line in lines),
        _names(y, lines, show),
        _columns(x, times_ms, lines, show),
    )
    return figure(label, drawn, WIDTH, HEIGHT)


def figure(label: str, drawn: Safe, width: int, height: int) -> Safe:
    picture = tag("svg", drawn, viewBox=f"0 0 {width} {height}", role="img", aria_label=label)
    return tag("div", picture, class_="chart", tabindex=0, role="group", aria_label=label)


def _grid(y_px: float, text: str) -> Safe:
    return join(
        tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y_px, y2=y_px, class_="grid"),
        tag("text", text, x=LEFT - 8, y=y_px + 4, class_="tick end"),
    )


def _time(x_px: float, text: str) -> Safe:
    return join(
        tag("line", x1=x_px, x2=x_px, y1=HEIGHT - BOTTOM, y2=HEIGHT - BOTTOM + 4, class_="axis"),
        tag("text", text, x=x_px, y=HEIGHT - 9, class_="tick"),
    )


def _mark(x: Scale, mark: Mark) -> Safe:
    left = x(mark.from_ms)
    width = max(2.0, x(mark.to_ms) - left)
    title = tag("title", mark.text)
    return tag(
        "rect", title, x=left, width=width, y=TOP, height=HEIGHT - TOP - BOTTOM, class_="mark"
    )


def _limit(y: Scale, limit: tuple[float, str] | None) -> Safe | None:
    if limit is None:
        return None
    y_px = y(limit[0])
    return join(
        tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y_px, y2=y_px, class_="limit"),
        tag("text", limit[1], x=LEFT + 6, y=y_px - 5, class_="tick start warn"),
    )


def _line(x: Scale, y: Scale, times_ms: Sequence[int], line: Line) -> Safe:
    parts = []
    low = line.low or ([y.low] * len(times_ms) if line.is_area else None)
    for run in _runs(line.values):
        top = [(x(times_ms[n]), y(line.values[n] or 0)) for n in run]
        if low is not None:
            bottom = [(x(times_ms[n]), y(low[n] or 0)) for n in reversed(run)]
            parts.append(tag("path", d=_path([*top, *bottom]) + "z", class_=f"band f{line.color}"))
        parts.append(tag("path", d=_path(top), class_=f"line s{line.color}"))
    return join(*parts)


def _runs(values: Sequence[float | None]) -> list[list[int]]:
    runs: list[list[int]] = [[]]
    for place, value in enumerate(values):
        if value is not None:
            runs[-1].append(place)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _path(points: Sequence[tuple[float, float]]) -> str:
    if len(points) == 1:  # one point alone would not be seen
        points = [points[0], (points[0][0] + 1.5, points[0][1])]
    return "M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in points)


def _names(y: Scale, lines: Sequence[Line], show: Show) -> Safe:
    """At the end of each line its name, one below the other where they would overlap."""
    ends = []
    for line in lines:
        last = next((value for value in reversed(line.values) if value is not None), None)
        if last is not None:
            ends.append((y(last), line, last))
    ends.sort(key=lambda end: end[0])
    placed, free_px = [], 0.0
    for after, (y_px, line, last) in enumerate(ends, 1):
        lowest_px = HEIGHT - 4 - (len(ends) - after) * LABEL_PX  # those below need room too
        free_px = max(free_px, min(y_px + 4, lowest_px))
        text = f"{line.name} {show(last)}" if len(line.name) < 9 else line.name
        placed.append(
            tag("text", text, x=WIDTH - RIGHT + 7, y=free_px, class_=f"tick start t{line.color}")
        )
        free_px += LABEL_PX
    return join(*placed)


def _columns(x: Scale, times_ms: Sequence[int], lines: Sequence[Line], show: Show) -> Safe:
    """What the values are, for who points at them."""
    step = -(-len(times_ms) // MOST_COLUMNS)
    width = (x.end_px - x.start_px) / max(1, len(times_ms) - 1) * step
    columns = []
    for place in range(0, len(times_ms), step):
        when = moment(datetime.fromtimestamp(times_ms[place] / 1000, UTC))
        said = "\n".join([when, *(f"{line.name}: {show(line.values[place])}" for line in lines)])
        columns.append(
            tag("rect", tag("title", said), x=x(times_ms[place]) - width / 2, width=width, y=TOP,
                height=HEIGHT - TOP - BOTTOM)
        )  # fmt: skip
    return tag("g", *columns, class_="hit")

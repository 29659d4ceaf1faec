"""Health over time: one band per subscriber, as high as its points, and what befell it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spark_jobs.html.lines import Mark, figure
from spark_jobs.html.markup import Safe, join, tag
from spark_jobs.html.scales import Scale, time_ticks

WIDTH, LEFT, RIGHT, ROW_PX, BAND_PX, BOTTOM = 960, 170, 52, 34, 26, 26
NAME_CHARS = 24


@dataclass(frozen=True, slots=True)
class Timeline:
    """`points` is (ms, 0 to 100); `end` is said behind the last."""

    name: str
    points: Sequence[tuple[int, float]]
    marks: Sequence[Mark] = field(default_factory=tuple)
    end: str = ""


def timelines(label: str, first_ms: int, last_ms: int, rows: Sequence[Timeline]) -> Safe:
    if not rows:
        return tag("p", "Nothing to draw.", class_="none")
    height = len(rows) * ROW_PX + BOTTOM
    x = Scale(first_ms, max(last_ms, first_ms + 1), LEFT, WIDTH - RIGHT)
    drawn = join(
        *(
            tag("line", x1=x(at), x2=x(at), y1=0, y2=height - BOTTOM + 4, class_="grid")
            for at, _ in time_ticks(first_ms, last_ms, 8)
        ),
        *(_row(place, row, x) for place, row in enumerate(rows)),
        *(
            tag("text", text, x=x(at), y=height - 8, class_="tick")
            for at, text in time_ticks(first_ms, last_ms, 8)
        ),
    )
    return figure(label, drawn, WIDTH, height)


def _row(place: int, row: Timeline, x: Scale) -> Safe:
    floor = place * ROW_PX + BAND_PX + 4
    y = Scale(0, 100, floor, floor - BAND_PX)
    line = "M" + "L".join(f"{x(at):.1f} {y(value):.1f}" for at, value in row.points)
    name = row.name if len(row.name) <= NAME_CHARS else row.name[: NAME_CHARS - 1] + "\u2026"
    parts = [
        tag("text", tag("title", row.name), name, x=LEFT - 8, y=floor - 8, class_="tick end name")
    ]
    for mark in row.marks:
        left = x(mark.from_ms)
        width = max(2.5, x(mark.to_ms) - left)
        parts.append(
            tag("rect", tag("title", mark.text), x=left, y=floor - BAND_PX, width=width,
                height=BAND_PX, class_="mark")
        )  # fmt: skip
    if row.points:
        first, last = x(row.points[0][0]), x(row.points[-1][0])
        area = f"{line}L{last:.1f} {floor}L{first:.1f} {floor}z"
        parts.append(tag("path", d=area, class_="band f1"))
        parts.append(tag("path", d=line, class_="line s1"))
    parts.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=floor, y2=floor, class_="grid"))
    parts.append(tag("text", row.end, x=WIDTH - RIGHT + 7, y=floor - 8, class_="tick start"))
    return join(*parts)


def spark_line(label: str, values: Sequence[float | None]) -> Safe:
    """As wide as a word or two, for a table's cell."""
    known = [value for value in values if value is not None]
    if not known:
        return tag("span", "\u2013")
    x, y = Scale(0, max(1, len(values) - 1), 1, 119), Scale(0, max(known) or 1.0, 21, 2)
    points = "L".join(f"{x(n):.1f} {y(v or 0):.1f}" for n, v in enumerate(values))
    path = tag("path", d=f"M{points}", class_="line s1")
    area = tag("path", d=f"M1 21L{points}L119 21z", class_="band f1")
    return tag(
        "svg", area, path, viewBox="0 0 120 22", class_="spark", role="img", aria_label=label
    )

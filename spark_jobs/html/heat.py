"""A heat map: one row per name, one cell per period, colours by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from spark_jobs.html.lines import figure
from spark_jobs.html.markup import Safe, join, tag
from spark_jobs.html.scales import time_ticks

WIDTH, LEFT, RIGHT, ROW_PX, BOTTOM = 960, 170, 8, 16, 26
NAME_CHARS = 24
QUIET_LEVELS = 2  # cells of these are drawn without a title, in one path: there are many


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A cell without a level stays empty: nothing happened. `titles` for the cells that matter."""

    name: str
    levels: Sequence[int | None]
    titles: dict[int, str] = field(default_factory=dict)


def heat_map(
    label: str, starts_ms: Sequence[int], rows: Sequence[HeatRow], legend: Sequence[str]
) -> Safe:
    """`legend` names the levels from 0 on; the last are the worst."""
    if not rows or not starts_ms:
        return tag("p", "Nothing to draw.", class_="none")
    cell_px = (WIDTH - LEFT - RIGHT) / len(starts_ms)
    height = len(rows) * ROW_PX + BOTTOM
    step_ms = starts_ms[1] - starts_ms[0] if len(starts_ms) > 1 else 3_600_000
    ticks = time_ticks(starts_ms[0], starts_ms[-1] + step_ms, 8)
    span_ms = starts_ms[-1] + step_ms - starts_ms[0]
    width = WIDTH - LEFT - RIGHT
    drawn = join(
        *(_row(place, row, cell_px) for place, row in enumerate(rows)),
        *(
            tag("text", text, x=LEFT + (at - starts_ms[0]) / span_ms * width, y=height - 8,
                class_="tick start")
            for at, text in ticks if at < starts_ms[0] + span_ms * 0.9
        ),
    )  # fmt: skip
    keys = [
        tag("li", tag("span", class_=f"key k{level}", aria_hidden="true"), text)
        for level, text in enumerate(legend)
    ]
    return join(figure(label, drawn, WIDTH, height), tag("ul", *keys, class_="legend"))


def _row(place: int, row: HeatRow, cell_px: float) -> Safe:
    y_px = place * ROW_PX
    name = row.name if len(row.name) <= NAME_CHARS else row.name[: NAME_CHARS - 1] + "\u2026"
    quiet: dict[int, list[str]] = {}
    loud = []
    at = 0
    for (level, _), cells in groupby(
        enumerate(row.levels), key=lambda cell: (cell[1], row.titles.get(cell[0]))
    ):
        count = len(list(cells))
        left, width = LEFT + at * cell_px, count * cell_px - min(0.5, cell_px / 4)
        title = row.titles.get(at)
        if level is not None and (title is None or level < QUIET_LEVELS):
            quiet.setdefault(level, []).append(f"M{left:.1f} {y_px}h{width:.1f}v14h{-width:.1f}z")
        elif level is not None:
            loud.append(
                tag("rect", tag("title", title), x=left, y=y_px, width=width, height=14,
                    class_=f"h{level}")
            )  # fmt: skip
        at += count
    return join(
        tag("text", tag("title", row.name), name, x=LEFT - 8, y=y_px + 11, class_="tick end name"),
        *(tag("path", d="".join(paths), class_=f"h{level}") for level, paths in quiet.items()),
        *loud,
    )

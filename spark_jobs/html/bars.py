"""How something is distributed: one bar per range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.html.lines import HEIGHT, LEFT, TOP, WIDTH, Show, figure
from spark_jobs.html.markup import Safe, join, tag
from spark_jobs.html.scales import Scale, nice_ticks
from spark_jobs.html.words import count

BOTTOM, RIGHT = 28, 16


@dataclass(frozen=True, slots=True)
class Bar:
    name: str
    value: float
    title: str = ""
    color: int = 1


def bar_chart(label: str, bars: Sequence[Bar], *, show: Show = count) -> Safe:
    if not any(bar.value for bar in bars):
        return tag("p", "Nothing to draw.", class_="none")
    ticks = nice_ticks(max(bar.value for bar in bars), 4)
    y = Scale(0, ticks[-1], HEIGHT - BOTTOM, TOP)
    step = (WIDTH - LEFT - RIGHT) / len(bars)
    # Names side by side, as many as there is room for.
    every = -(-max(len(bar.name) for bar in bars) * 7 // int(step)) or 1
    parts = []
    for value in ticks:
        parts.append(
            tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y(value), y2=y(value), class_="grid")
        )
        parts.append(tag("text", show(value), x=LEFT - 8, y=y(value) + 4, class_="tick end"))
    for place, bar in enumerate(bars):
        left, top = LEFT + place * step, y(bar.value)
        parts.append(
            tag("rect", tag("title", bar.title or f"{bar.name}: {show(bar.value)}"),
                x=left + step * 0.08, y=top, width=step * 0.84, height=max(0.0, y(0) - top),
                class_=f"f{bar.color} bar")
        )  # fmt: skip
        if place % every == 0:
            parts.append(tag("text", bar.name, x=left + step / 2, y=HEIGHT - 9, class_="tick"))
    return figure(label, join(*parts), WIDTH, HEIGHT)

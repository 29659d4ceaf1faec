"""Tables that sort when a script may run, and are tables when it may not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_jobs.html.markup import Child, Safe, join, tag

LEVELS = {"good": "fine", "note": "note", "warn": "warn", "bad": "bad"}


@dataclass(frozen=True, slots=True)
class Cell:
    """`sort` is what it is compared by; without one, its text."""

    shown: Child
    sort: float | str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    is_number: bool = True
    hint: str = ""


def table(
    caption: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell | str]],
    left_out: str = "",
) -> Safe:
    """The first column names the row. `left_out` says what is not in it."""
    if not rows:
        return tag("p", "None.", class_="none")
    head = [
        tag("th", column.name, scope="col", class_="number" if column.is_number else None,
            title=column.hint or None)
        for column in columns
    ]  # fmt: skip
    body = [
        tag("tr", *(_cell(n, cell, column) for n, (cell, column) in
                    enumerate(zip(row, columns, strict=True))))
        for row in rows
    ]  # fmt: skip
    whole = tag(
        "table", tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *body)
    )
    note = tag("p", left_out, class_="left-out") if left_out else None
    scroll = tag("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)
    return join(scroll, note)


def badge(text: str, level: str) -> Safe:
    return tag("span", text, class_=f"badge {LEVELS[level]}")


def left_out(shown: int, of: int, what: str) -> str:
    return (
        f"The first {shown:,} of {of:,} {what}; {of - shown:,} are left out." if of > shown else ""
    )


def _cell(place: int, cell: Cell | str, column: Column) -> Safe:
    if isinstance(cell, str):
        cell = Cell(cell)
    sort = None if cell.sort is None else str(cell.sort)
    number = "number" if column.is_number else None
    if place == 0:
        return tag("th", cell.shown, scope="row", data_sort=sort)
    return tag("td", cell.shown, class_=number, data_sort=sort)

from __future__ import annotations

from collections.abc import Sequence

Cell = str | int | float


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    texts = [list(columns), *([shown(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in texts) for i in range(len(columns))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
             for row in texts]  # fmt: skip
    return "\n".join(["", title, lines[0], "-" * len(lines[0]), *lines[1:]])


def shown(cell: Cell) -> str:
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 100 else f"{cell:.2f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def percent(ratio: float) -> str:
    return f"{ratio:.0%}"

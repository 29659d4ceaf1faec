"""Elements whose every text is escaped: what is not `Safe` is text."""

from __future__ import annotations

import html
import re

# Not allowed in HTML, whatever a subscriber is called.
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
EMPTY = {"path", "rect", "line", "circle", "polyline", "meta", "br", "col"}

Attribute = str | int | float | None


class Safe(str):
    """Made by `tag` and `raw` only."""

    __slots__ = ()


Child = Safe | str | int | None


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Safe:
    """`class_` is `class`, other underscores are dashes. None leaves a child or attribute out."""
    inside = "".join(_text(child) for child in children if child is not None)
    opened = name + "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_text(_plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in EMPTY and not inside:
        return Safe(f"<{opened}/>")
    return Safe(f"<{opened}>{inside}</{name}>")


def join(*children: Child) -> Safe:
    return Safe("".join(_text(child) for child in children if child is not None))


def raw(text: str) -> Safe:
    """Only for our own style and script."""
    return Safe(text)


def _text(child: Child) -> str:
    if isinstance(child, Safe):
        return child
    return html.escape(CONTROLS.sub("\ufffd", str(child)))


def _plain(value: Attribute) -> str:
    """Coordinates to a tenth of a pixel: a page has thousands of them."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)

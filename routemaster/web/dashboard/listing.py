"""Long lists: found by a part of the name, sorted, a page at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from flask import request

PAGE = 100
MOST_PAGES = 1_000_000
LONGEST_SEARCH = 64

Key = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Listing:
    names: list[str]  # on this page
    found: int
    page: int
    pages: int
    search: str
    sort: str
    path: str

    def link(self, **changes: object) -> str:
        """This list with something else asked for."""
        asked = {"q": self.search, "sort": self.sort, "page": self.page} | changes
        told = {name: value for name, value in asked.items() if value not in ("", 1)}
        return f"{self.path}?{urlencode(told)}"


def listing(names: Iterable[str], sorts: Mapping[str, Key]) -> Listing:
    """`sorts` has the keys that can be asked for, the usual first; equals are in order of name."""
    search = request.args.get("q", "").strip().lower()[:LONGEST_SEARCH]
    asked = request.args.get("sort", "")
    sort = asked if asked in sorts else next(iter(sorts))
    found = sorted(name for name in names if search in name)
    found.sort(key=sorts[sort])
    pages = max(1, -(-len(found) // PAGE))
    page = min(asked_number("page"), pages)
    return Listing(
        names=found[(page - 1) * PAGE : page * PAGE],
        found=len(found), page=page, pages=pages, search=search, sort=sort, path=request.path,
    )  # fmt: skip


def asked_number(name: str) -> int:
    """From 1; what is no number is 1."""
    text = request.args.get(name, "")
    is_number = text.isascii() and text.isdigit() and len(text) <= 9
    return max(1, min(int(text), MOST_PAGES)) if is_number else 1

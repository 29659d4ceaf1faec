"""Style, script and icon: read once, and kept by browsers until they change."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from flask import Blueprint, Response

from routemaster.errors import NotFound

FOLDER = Path(__file__).parent / "static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
YEAR_S = 31_536_000


@dataclass(frozen=True, slots=True)
class File:
    content: bytes
    type: str
    digest: str


@cache
def files() -> dict[str, File]:
    return {
        path.name: File(content, TYPES[path.suffix], hashlib.sha256(content).hexdigest()[:12])
        for path in FOLDER.iterdir()
        if path.suffix in TYPES and (content := path.read_bytes())
    }


def address(name: str) -> str:
    """With a digest: a new version has another address."""
    return f"/dashboard/static/{name}?{files()[name].digest}"


def add(routes: Blueprint) -> None:
    @routes.get("/static/<file>")
    def static(file: str) -> Response:
        found = files().get(file)
        if found is None:
            raise NotFound("There is no such file.")
        response = Response(found.content, content_type=found.type)
        response.headers["Cache-Control"] = f"public, max-age={YEAR_S}, immutable"
        return response

"""`/openapi.json`, and `/docs` to browse it; for anyone, because it holds nothing of anybody's."""

from __future__ import annotations

from pathlib import Path

import msgspec
from flask import Blueprint, Response

from routemaster.bus import Bus
from routemaster.web.openapi.document import document
from routemaster.web.openapi.page import page

STYLE = (Path(__file__).resolve().parent / "static" / "docs.css").read_bytes()
# No script at all; the one style sheet is ours.
POLICY = "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"


def blueprint(bus: Bus) -> Blueprint:
    routes = Blueprint("docs", __name__, template_folder="templates")
    described = document(bus.settings)
    encoded = msgspec.json.encode(described)

    @routes.get("/openapi.json")
    def openapi() -> Response:
        return Response(encoded, content_type="application/json")

    @routes.get("/docs")
    def docs() -> Response:
        response = Response(page(described), content_type="text/html; charset=utf-8")
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    @routes.get("/docs/style.css")
    def style() -> Response:
        return Response(STYLE, content_type="text/css; charset=utf-8")

    return routes

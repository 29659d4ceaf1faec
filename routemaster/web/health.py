"""For load balancers and containers: no credentials, and nothing but up or down."""

from __future__ import annotations

from flask import Blueprint, Response

from routemaster.bus import Bus
from routemaster.errors import StoreUnavailable
from routemaster.web.answers import as_json


def blueprint(bus: Bus) -> Blueprint:
    routes = Blueprint("health", __name__)

    @routes.get("/health")
    def health() -> Response:
        try:
            bus.link.call("PING")
        except StoreUnavailable:
            return as_json({"status": "unavailable", "redis": "down"}, 503)
        return as_json({"status": "ok", "redis": "ok"})

    @routes.get("/health/ping")
    def ping() -> Response:
        return as_json({"status": "ok"})

    return routes

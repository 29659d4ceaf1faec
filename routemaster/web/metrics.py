from __future__ import annotations

from flask import Blueprint, Response

from routemaster.bus import Bus
from routemaster.metrics.gather import gather
from routemaster.metrics.prometheus import CONTENT_TYPE, exposition
from routemaster.web.callers import Callers


def blueprint(bus: Bus, callers: Callers) -> Blueprint:
    routes = Blueprint("metrics", __name__)

    @routes.get("/metrics")
    def metrics() -> Response:
        # It names every client and topic.
        callers.root()
        return Response(exposition(gather(bus)), content_type=CONTENT_TYPE)

    return routes

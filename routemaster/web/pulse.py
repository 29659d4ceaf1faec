"""Is the bus alive, and has it more to do than its workers manage?"""

from __future__ import annotations

import threading

from flask import Blueprint, Response

from routemaster.bus import Bus
from routemaster.web.answers import nothing
from routemaster.web.callers import Callers

# As many jobs due at once as an autoscaler should hear of.
MANY_JOBS = 100
HEARD_S = 1.0


def blueprint(bus: Bus, callers: Callers) -> Blueprint:
    routes = Blueprint("pulse", __name__)
    one_at_a_time = threading.Lock()

    @routes.get("/pulse")
    def pulse() -> Response:
        callers.anyone()
        # A write, because a Redis that is full or read-only still answers a PING.
        bus.link.call("SET", bus.keys.pulse, "1", "EX", 60)
        return nothing()

    @routes.get("/pulse/scaling")
    def scaling() -> Response:
        callers.anyone()
        due = bus.main.due()
        # Autoscalers of the original watch the response time. One request at most waits, so
        # that asking often cannot take the threads away from publishers.
        if due >= MANY_JOBS and one_at_a_time.acquire(blocking=False):
            try:
                bus.clock.sleep(HEARD_S)
            finally:
                one_at_a_time.release()
        response = nothing()
        response.headers["Routemaster-Jobs-Due"] = str(due)
        return response

    return routes

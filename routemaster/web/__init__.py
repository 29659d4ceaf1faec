"""The HTTP API: a Flask application given a bus."""

from __future__ import annotations

from flask import Flask

from routemaster.bus import Bus
from routemaster.web import (
    api_tokens,
    dashboard,
    docs,
    errors,
    health,
    metrics,
    operations,
    pulls,
    pulse,
    subscribers,
    tls,
    topics,
)
from routemaster.web.callers import Callers
from routemaster.web.front import Front
from routemaster.web.streams import STREAMS, Streams
from routemaster.web.waiting import ROOM, Room


def create_app(bus: Bus) -> Flask:
    app = Flask("routemaster", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = bus.settings.max_body_bytes
    app.url_map.strict_slashes = True
    # Or `/topics//orders` would be answered by a redirect, which is no JSON.
    app.url_map.merge_slashes = False
    callers = Callers(bus)
    streams = app.extensions[STREAMS] = Streams(bus)
    room = app.extensions[ROOM] = Room(bus)
    tls.install(app, bus.settings)
    errors.install(app, bus.authenticator)
    app.register_blueprint(topics.blueprint(bus, callers, streams))
    app.register_blueprint(subscribers.blueprint(bus, callers))
    app.register_blueprint(pulls.blueprint(bus, callers, room))
    app.register_blueprint(operations.blueprint(bus, callers))
    app.register_blueprint(api_tokens.blueprint(bus, callers))
    app.register_blueprint(pulse.blueprint(bus, callers))
    app.register_blueprint(metrics.blueprint(bus, callers))
    app.register_blueprint(health.blueprint(bus))
    if bus.settings.dashboard:
        app.register_blueprint(dashboard.blueprint(bus, streams))
    app.register_blueprint(docs.blueprint(bus))
    app.wsgi_app = Front(app, bus)  # type: ignore[method-assign]  # Flask's own way to wrap it
    return app

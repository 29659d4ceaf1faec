"""Subscriptions. A client has one, named after it; every path goes by two spellings."""

from __future__ import annotations

from flask import Blueprint, Response, request

from routemaster.bus import Bus
from routemaster.domain.names import parse_client, parse_topic
from routemaster.domain.secret import parse_secret
from routemaster.domain.signature import new_secret
from routemaster.domain.subscription import Subscription
from routemaster.errors import Forbidden
from routemaster.store.subscribers import SubscriberSummary
from routemaster.subscribe import (
    leave_topic,
    rotate_secret,
    set_state,
    signing_secret,
    subscribe,
    unsubscribe,
)
from routemaster.web.answers import as_json, json_body, json_object, nothing
from routemaster.web.callers import Callers


def blueprint(bus: Bus, callers: Callers) -> Blueprint:
    routes = Blueprint("subscribers", __name__)

    @routes.post("/subscription")
    @routes.post("/subscriber")
    def replace() -> Response:
        identity = callers.client()
        wanted = Subscription.parse(
            json_body(),
            allow_http=bus.settings.http_callbacks,
            allowed_networks=bus.settings.callback_networks,
        )
        subscribe(bus, identity.name, wanted)
        return nothing()

    @routes.delete("/subscription")
    @routes.delete("/subscriber")
    def remove() -> Response:
        unsubscribe(bus, callers.client().name)
        return nothing()

    @routes.delete("/subscription/topics/<topic>")
    @routes.delete("/subscriber/topics/<topic>")
    def leave(topic: str) -> Response:
        identity = callers.client()
        leave_topic(bus, identity.name, parse_topic(topic))
        return nothing()

    @routes.get("/subscriptions")
    @routes.get("/subscribers")
    def listed() -> Response:
        identity = callers.anyone()
        everybody = sorted(bus.directory.table.routes)
        # A callback is its owner's business.
        names = [n for n in everybody if identity.is_root or n == identity.name]
        return as_json([shown(summary) for summary in bus.subscribers.summaries(names)])

    @routes.delete("/subscriptions/<name>")
    @routes.delete("/subscribers/<name>")
    def remove_named(name: str) -> Response:
        unsubscribe(bus, named(name))
        return nothing()

    @routes.post("/subscription/pause")
    @routes.post("/subscriber/pause")
    def pause() -> Response:
        set_state(bus, callers.client().name, "paused")
        return nothing()

    @routes.post("/subscription/resume")
    @routes.post("/subscriber/resume")
    def resume() -> Response:
        set_state(bus, callers.client().name, "active")
        return nothing()

    @routes.post("/subscriptions/<name>/pause")
    @routes.post("/subscribers/<name>/pause")
    def pause_named(name: str) -> Response:
        set_state(bus, named(name), "paused")
        return nothing()

    @routes.post("/subscriptions/<name>/resume")
    @routes.post("/subscribers/<name>/resume")
    def resume_named(name: str) -> Response:
        set_state(bus, named(name), "active")
        return nothing()

    @routes.get("/subscription/secret")
    @routes.get("/subscriber/secret")
    def show_secret() -> Response:
        return secretly(signing_secret(bus, callers.client().name))

    @routes.post("/subscription/secret")
    @routes.post("/subscriber/secret")
    def change_secret() -> Response:
        identity = callers.client()
        secret = given_secret() or new_secret()
        rotate_secret(bus, identity.name, secret)
        return secretly(secret)

    def named(name: str) -> str:
        """The subscriber in a path: its own client's business, and root's."""
        identity = callers.anyone()
        if not identity.is_root and identity.name != name:
            raise Forbidden("another client's subscription")
        return parse_client(name)

    return routes


def given_secret() -> str | None:
    if not request.content_length and "Transfer-Encoding" not in request.headers:
        return None
    given = json_object({"secret"}).get("secret")
    return None if given is None else parse_secret(given)


def secretly(secret: str) -> Response:
    response = as_json({"secret": secret})
    response.headers["Cache-Control"] = "no-store"
    return response


def shown(subscriber: SubscriberSummary) -> dict[str, object]:
    return {
        "subscriber": subscriber.name,
        "callback": subscriber.callback or None,
        "max_events": subscriber.max_events,
        "timeout": subscriber.timeout_ms,
        "concurrency": subscriber.concurrency,
        "topics": subscriber.topics,
        "patterns": subscriber.patterns,
        "state": subscriber.state,
        "health_points": subscriber.health_points,
        "last_attempted_at": subscriber.last_attempted_at_ms,
        "events": {
            "sent": subscriber.sent,
            "queued": subscriber.queued,
            "oldest": subscriber.oldest_ms,
        },
        "batches": {"queued": subscriber.batches},
    }

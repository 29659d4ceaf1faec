"""Batches for subscribers without callback: taken, acknowledged, refused, kept for longer."""

from __future__ import annotations

from flask import Blueprint, Response, request

from routemaster.bus import Bus
from routemaster.delivery.message import compose
from routemaster.domain.subscription import integer
from routemaster.errors import InvalidInput
from routemaster.publish import MAX_KEY
from routemaster.pull import acknowledge, lease_id_of, refuse, renew, take
from routemaster.store.pulls import Pulled
from routemaster.web.answers import json_object, nothing
from routemaster.web.callers import Callers
from routemaster.web.waiting import TURN, Room, Turn

MOST_WAIT_S = 30
MOST_LEASE_S, USUAL_LEASE_S = 3600, 30
MOST_DELAY_MS = 3_600_000
# Of what a callback would be shown: they say how to reach it, or are the server's to write.
UNSHOWN = ("authorization", "user-agent", "expect")
CROWDED_S = 1


def blueprint(bus: Bus, callers: Callers, room: Room) -> Blueprint:
    routes = Blueprint("pulls", __name__)

    @routes.get("/subscription/batch")
    @routes.get("/subscriber/batch")
    def pull() -> Response:
        name = callers.client().name
        wait_s = asked_seconds("wait", 0, MOST_WAIT_S, 0)
        lease_ms = asked_seconds("lease", 1, MOST_LEASE_S, USUAL_LEASE_S) * 1000
        turn, key = request.environ.get(TURN) or Turn(), asked_key()
        if request.method == "HEAD":  # only looking: nothing is taken
            return nothing()
        if turn.until_ms is None:
            turn.until_ms = bus.clock.mono_ms() + wait_s * 1000
        lease_id = lease_id_of(key) if key else turn.lease_id
        while True:
            ticket = room.ticket(name)
            found = take(bus, name, lease_id, lease_ms, repeated=bool(key))
            if found:
                return batch_of(found)
            if bus.clock.mono_ms() >= turn.until_ms or room.is_closing:
                return nothing()
            if room.is_full:
                return too_many()
            room.wait(turn, name, ticket, turn.until_ms)

    @routes.delete("/subscription/batch/<bid>")
    @routes.delete("/subscriber/batch/<bid>")
    def done(bid: str) -> Response:
        acknowledge(bus, callers.client().name, bid, asked_fence())
        return nothing()

    @routes.post("/subscription/batch/<bid>/refuse")
    @routes.post("/subscriber/batch/<bid>/refuse")
    def refused(bid: str) -> Response:
        name = callers.client().name
        refuse(bus, name, bid, asked_fence(), asked_delay_ms())
        return nothing()

    @routes.post("/subscription/batch/<bid>/renew")
    @routes.post("/subscriber/batch/<bid>/renew")
    def renewed(bid: str) -> Response:
        name = callers.client().name
        lease_ms = asked_seconds("lease", 1, MOST_LEASE_S, USUAL_LEASE_S) * 1000
        until_ms = renew(bus, name, bid, asked_fence(), lease_ms)
        response = nothing()
        response.headers["Routemaster-Lease-Until"] = str(until_ms)
        return response

    return routes


def batch_of(found: Pulled) -> Response:
    lease = found.lease
    assert lease and lease.batch and lease.receiver
    message = compose(lease.batch, lease.receiver, found.now_ms, lease.dropped)
    response = Response(message.body)
    for header in message.headers:
        name, _, value = header.partition(":")
        if name.lower() not in UNSHOWN:
            response.headers[name] = value.strip()
    response.headers["Routemaster-Lease"] = lease.fence
    response.headers["Routemaster-Lease-Until"] = str(found.until_ms)
    response.headers["Cache-Control"] = "no-store"
    return response


def too_many() -> Response:
    response = nothing()
    response.headers["Retry-After"] = str(CROWDED_S)
    return response


def asked_seconds(name: str, least: int, most: int, default: int) -> int:
    text = request.args.get(name)
    if text is None:
        return default
    is_number = text.isascii() and text.isdigit() and len(text) <= 9
    if not is_number or not least <= int(text) <= most:
        raise InvalidInput(name, f"must be a whole number of seconds from {least} to {most}")
    return int(text)


def asked_key() -> str:
    key = request.headers.get("Idempotency-Key", "")
    if len(key) > MAX_KEY or not key.isprintable() or not key.isascii():
        raise InvalidInput("Idempotency-Key", f"must be at most {MAX_KEY} printable characters")
    return key


def asked_fence() -> str:
    fence = request.headers.get("Routemaster-Lease", "")
    if fence and not (fence.isascii() and fence.isdigit() and len(fence) <= 20):
        raise InvalidInput("Routemaster-Lease", "must be what came with the batch")
    return fence


def asked_delay_ms() -> int | None:
    if not request.content_length and "Transfer-Encoding" not in request.headers:
        return None
    fields = json_object({"delay"})
    if fields.get("delay") is None:
        return None
    return integer(fields, "delay", 0, MOST_DELAY_MS, default=0)

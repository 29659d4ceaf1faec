"""What became of deliveries, for their subscriber and for root."""

from __future__ import annotations

import re

from flask import Blueprint, Response, request

from routemaster.bus import Bus
from routemaster.domain.attempt import Attempt
from routemaster.domain.names import parse_client
from routemaster.errors import Conflict, Forbidden, InvalidInput, NotFound
from routemaster.identity import Identity
from routemaster.store.operations import DROPPED_STATUS, STATUSES, SUCCESS, Operation
from routemaster.web.answers import as_json
from routemaster.web.callers import Callers

MOST = 200
CURSOR = re.compile(r"([0-9]{1,15})-([A-Za-z0-9_-]{1,64})", re.ASCII)
WHY_NOT = {
    SUCCESS: "was delivered, and its events are no longer kept: publish them again",
    DROPPED_STATUS: "was dropped, and its events are no longer kept: publish them again",
}


def blueprint(bus: Bus, callers: Callers) -> Blueprint:
    routes = Blueprint("operations", __name__)

    @routes.get("/operations/<bid>")
    def one(bid: str) -> Response:
        return as_json(shown(found(callers.anyone(), bid)))

    @routes.get("/subscription/operations")
    @routes.get("/subscriber/operations")
    def listed() -> Response:
        subscriber = whose(callers.anyone())
        status = asked_status()
        limit, before = asked_limit(), asked_cursor()
        everything = bus.operations.recent(subscriber, limit + 1, bus.clock.now_ms())
        wanted = [
            op for op in everything
            if (not status or op.status == status) and (not before or op.place < before)
        ]  # fmt: skip
        more = len(wanted) > limit
        page = wanted[:limit]
        return as_json(
            {
                "operations": [shown(op) for op in page],
                "next": f"{page[-1].updated_ms}-{page[-1].bid}" if more else None,
                "counts": bus.operations.counts(subscriber),
            }
        )

    @routes.post("/operations/<bid>/redeliver")
    def redeliver(bid: str) -> Response:
        operation = found(callers.anyone(), bid)
        redeliver_now(bus, operation)
        return as_json({"id": operation.bid}, 202)

    def found(identity: Identity, bid: str) -> Operation:
        names = sorted(bus.directory.table.routes) if identity.is_root else [identity.name]
        operation = bus.operations.find(bid, names, bus.clock.now_ms())
        # Another client's is answered like none: ids are not to be guessed.
        if operation is None or not (identity.is_root or operation.subscriber == identity.name):
            raise NotFound("no such operation, or it is older than 24 hours")
        return operation

    return routes


def redeliver_now(bus: Bus, operation: Operation) -> None:
    """The lane of a batch that is still kept becomes due at once, in its order."""
    if operation.status in WHY_NOT:
        raise Conflict(f"{operation.bid} {WHY_NOT[operation.status]}")
    (summary,) = bus.subscribers.summaries([operation.subscriber]) or (None,)
    if summary is None:
        raise NotFound("no such operation, or it is older than 24 hours")
    if summary.state != "active":
        raise Conflict(
            f"{operation.subscriber} is {summary.state}: resume it, and all it has is delivered"
        )
    bus.operations.hasten(operation.subscriber, operation.lane)


def whose(identity: Identity) -> str:
    asked = request.args.get("subscriber")
    if not identity.is_root:
        if asked is not None and parse_client(asked, "subscriber") != identity.name:
            raise Forbidden("another client's subscription")
        return identity.name
    if asked is None:
        raise InvalidInput("subscriber", "must be given by root: ?subscriber=NAME")
    return parse_client(asked, "subscriber")


def asked_status() -> str:
    status = request.args.get("status", "")
    if status and status not in STATUSES:
        raise InvalidInput("status", "must be one of " + ", ".join(STATUSES))
    return status


def asked_limit() -> int:
    text = request.args.get("limit", "50")
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MOST:
        raise InvalidInput("limit", f"must be from 1 to {MOST}")
    return int(text)


def asked_cursor() -> tuple[int, str] | None:
    text = request.args.get("before")
    if text is None:
        return None
    match = CURSOR.fullmatch(text)
    if match is None:
        raise InvalidInput("before", "must be the `next` of an earlier page")
    return int(match[1]), match[2]


def shown(operation: Operation) -> dict[str, object]:
    return {
        "id": operation.bid,
        "subscriber": operation.subscriber,
        "lane": operation.lane,
        "status": operation.status,
        "reason": operation.reason or None,
        "created": operation.created_ms,
        "updated": operation.updated_ms,
        "events": operation.events,
        "first_seq": operation.first_seq,
        "last_seq": operation.first_seq + operation.events - 1,
        "attempts": [shown_attempt(attempt) for attempt in operation.attempts],
    }


def shown_attempt(attempt: Attempt) -> dict[str, object]:
    return {
        "attempt": attempt.number,
        "started": attempt.started_ms,
        "finished": attempt.finished_ms,
        "outcome": attempt.outcome,
        "status": attempt.status or None,
        "error": attempt.error or None,
        "bytes": attempt.sent_bytes,
        "response": attempt.excerpt.decode("utf-8", "replace"),
        "worker": attempt.worker,
    }

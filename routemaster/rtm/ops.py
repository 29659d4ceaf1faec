from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from routemaster.rtm.session import Session, with_bus

STATUSES = ["QUEUED", "RUNNING", "SUCCESS", "ERROR", "DROPPED"]


@click.command("ops")
@click.argument("id", required=False)
@click.option("--status", type=click.Choice(STATUSES, case_sensitive=False))
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@click.option("--subscriber", metavar="NAME", help="Whose; root has to say so.")
@with_bus
def command(
    session: Session, id: str | None, status: str | None, limit: int, subscriber: str | None
) -> None:
    """Deliveries of the last 24 hours, newest first; or of one (its webhook-id) every attempt."""
    if id is not None:
        return one(session, session.client.operation(id))
    page = session.client.operations(subscriber=subscriber, status=status, limit=limit)
    if session.as_json:
        session.json(page)
    else:
        rows = [row(operation) for operation in page["operations"]]
        session.rows(rows, "id", "status", "updated", "lane", "events", "attempts", "last_error")


def one(session: Session, operation: dict[str, Any]) -> None:
    if session.as_json:
        return session.json(operation)
    session.say("\t".join(f"{key} {operation[key]}" for key in ("status", "lane", "events")))
    attempts = [
        {
            **attempt,
            "started": when(attempt["started"]),
            "took_ms": attempt["finished"] - attempt["started"],
        }
        for attempt in operation["attempts"]
    ]
    session.rows(attempts, "attempt", "started", "took_ms", "outcome", "status", "error")


def row(operation: dict[str, Any]) -> dict[str, Any]:
    attempts = operation["attempts"]
    return {
        **operation,
        "updated": when(operation["updated"]),
        "attempts": len(attempts),
        "last_error": attempts[-1]["error"] if attempts else None,
    }


def when(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")

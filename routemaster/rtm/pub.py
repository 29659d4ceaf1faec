from __future__ import annotations

import json

import click

from routemaster.client import Event
from routemaster.rtm.session import Session, with_bus

# The original's words, and what goes over the wire.
EVENTS = {"created": "create", "updated": "update", "deleted": "delete", "noop": "noop"}
WORDS = [*EVENTS, "create", "update", "delete"]


@click.command("pub")
@click.argument("event", type=click.Choice(WORDS), metavar="EVENT")
@click.argument("topic")
@click.argument("url")
@click.option("--at", "t", type=int, metavar="MS", help="When it happened, since 1970.")
@click.option("--data", metavar="JSON", help="A small JSON object that goes with it.")
@click.option("--facet", help="Events of one facet are in order among themselves.")
@click.option("--id", help="The same id within 24 hours is the same event.")
@with_bus
def command(
    session: Session,
    event: str,
    topic: str,
    url: str,
    t: int | None,
    data: str | None,
    facet: str | None,
    id: str | None,
) -> None:
    """Publishes one event: EVENT is created, updated, deleted or noop."""
    try:
        parsed = None if data is None else json.loads(data)
    except ValueError:
        raise click.BadParameter("must be JSON", param_hint="--data") from None
    kind = EVENTS.get(event, event)
    session.client.publish(topic, Event(kind, url, t, parsed, facet, None, id))

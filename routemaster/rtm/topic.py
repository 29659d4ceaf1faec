from __future__ import annotations

import click

from routemaster.rtm.session import Session, with_bus


@click.group("topic")
def command() -> None:
    """Topics."""


@command.command("list")
@with_bus
def listed(session: Session) -> None:
    session.rows(session.client.topics(), "name", "publisher", "events")


@command.command("del")
@click.argument("topic")
@with_bus
def delete(session: Session, topic: str) -> None:
    """Unsubscribes everybody from TOPIC and gives up owning it; what is queued stays."""
    session.client.delete_topic(topic)

from __future__ import annotations

import click

from routemaster.rtm.session import Session, with_bus


@click.group("token")
def command() -> None:
    """API tokens. Takes the root key as --token."""


@command.command("add")
@click.argument("service")
@click.argument("new_token", metavar="[TOKEN]", required=False)
@with_bus
def add(session: Session, service: str, new_token: str | None) -> None:
    """Makes a token (or takes TOKEN) for the client SERVICE, and prints it: the only time."""
    made = session.client.add_token(service, new_token)
    if session.as_json:
        session.json({"name": service, "token": made})
    else:
        click.echo(made)


@command.command("del")
@click.argument("old_token", metavar="TOKEN")
@with_bus
def delete(session: Session, old_token: str) -> None:
    """Removes TOKEN, given in full or as `list` shows it."""
    session.client.delete_token(old_token)


@command.command("list")
@with_bus
def listed(session: Session) -> None:
    """Tokens, masked, and whose they are."""
    tokens = session.client.tokens()
    if not tokens:
        click.echo("No tokens have been added.", err=True)
    session.rows(tokens, "token", "name")

from __future__ import annotations

import click

from routemaster.client import Conflict, NotFound
from routemaster.rtm.session import Session, progress, with_bus


@click.command("replay")
@click.argument("ids", metavar="[ID...]", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All that wait after a failure.")
@click.option("--subscriber", metavar="NAME", help="Whose; root has to say so.")
@with_bus
def command(
    session: Session, ids: tuple[str, ...], everything: bool, subscriber: str | None
) -> None:
    """Delivers now what is waiting for its next attempt. What was delivered or dropped is no longer
    kept, and has to be published again."""
    if bool(ids) == everything:
        raise click.UsageError("give either ids (see `rtm ops`) or --all")
    wanted = list(ids) if ids else failed(session, subscriber)
    refused: dict[str, str] = {}
    with progress("replaying", len(wanted)) as show:
        for number, id in enumerate(wanted, 1):
            try:
                session.client.redeliver(id)
            except (Conflict, NotFound) as problem:
                refused[id] = str(problem)
            show(number)
    if session.as_json:
        session.json({"replayed": len(wanted) - len(refused), "refused": refused})
    else:
        click.echo(f"{len(wanted) - len(refused)} replayed")
        for id, why in refused.items():
            click.echo(f"{id}: {why}", err=True)
    # A batch of --all that was delivered meanwhile is what was wanted.
    if refused and ids:
        raise click.exceptions.Exit(1)


def failed(session: Session, subscriber: str | None) -> list[str]:
    """The oldest batch of each lane that was tried and waits: the others follow it."""
    found: list[str] = []
    for status in ("QUEUED", "ERROR"):
        before: str | None = None
        while True:
            page = session.client.operations(
                subscriber=subscriber, status=status, limit=200, before=before
            )
            found += [op["id"] for op in page["operations"] if op["attempts"]]
            before = page["next"]
            if before is None:
                break
    return found

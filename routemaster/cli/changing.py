"""Commands that change something say first how much it is, and ask."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from routemaster.bus import Bus
from routemaster.cli.session import a_bus, number
from routemaster.operate import Backlog, backlog

F = TypeVar("F", bound=Callable[..., Any])


def change_options(function: F) -> F:
    yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")
    dry_run = click.option("--dry-run", "-n", is_flag=True, help="Only say how much it would be.")
    return yes(dry_run(function))


def change(
    subscriber: str, verb: str, act: Callable[[Bus], str], *, yes: bool, dry_run: bool
) -> None:
    with a_bus() as bus:
        click.echo(counted(backlog(bus, subscriber)))
        if dry_run:
            click.echo(f"Would {verb}: nothing was changed.")
            return
        if not yes and not sys.stdin.isatty():
            raise click.UsageError("nobody is there to ask: say --yes, or --dry-run")
        if not yes:
            click.confirm(f"{verb.capitalize()}?", abort=True)
        click.echo(act(bus))


def counted(held: Backlog) -> str:
    return (
        f"{held.name} is {held.state} and holds {number(held.events)} events in "
        f"{number(held.batches)} batches, in {number(held.lanes)} lanes."
    )

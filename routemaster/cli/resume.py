from __future__ import annotations

import click

from routemaster.bus import Bus
from routemaster.cli.changing import change, change_options
from routemaster.subscribe import set_state


@click.command()
@click.argument("subscriber")
@change_options
def command(subscriber: str, yes: bool, dry_run: bool) -> None:
    """Deliver to SUBSCRIBER again, also after a 410."""

    def act(bus: Bus) -> str:
        set_state(bus, subscriber, "active")
        return f"{subscriber} is active"

    change(subscriber, "resume", act, yes=yes, dry_run=dry_run)

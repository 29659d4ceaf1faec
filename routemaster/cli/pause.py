from __future__ import annotations

import click

from routemaster.bus import Bus
from routemaster.cli.changing import change, change_options
from routemaster.subscribe import set_state


@click.command()
@click.argument("subscriber")
@change_options
def command(subscriber: str, yes: bool, dry_run: bool) -> None:
    """Deliver nothing more to SUBSCRIBER; its events go on being queued."""

    def act(bus: Bus) -> str:
        set_state(bus, subscriber, "paused")
        return f"{subscriber} is paused"

    change(subscriber, "pause", act, yes=yes, dry_run=dry_run)

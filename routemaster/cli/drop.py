from __future__ import annotations

import click

from routemaster.bus import Bus
from routemaster.cli.changing import change, change_options
from routemaster.operate import drop


@click.command()
@click.argument("subscriber")
@click.option("--lane", help="Only this lane, as the operations show it.")
@change_options
def command(subscriber: str, lane: str | None, yes: bool, dry_run: bool) -> None:
    """Give up what SUBSCRIBER holds, for good; each range is recorded and told to it."""

    def act(bus: Bus) -> str:
        events = sum(drop(bus, subscriber, lane))
        return f"{events:,} events of {subscriber} are given up"

    change(subscriber, "give up", act, yes=yes, dry_run=dry_run)

from __future__ import annotations

import click

from routemaster.bus import Bus
from routemaster.cli.changing import change, change_options
from routemaster.operate import replay


@click.command()
@click.argument("subscriber")
@click.option("--lane", help="Only this lane, as the operations show it.")
@change_options
def command(subscriber: str, lane: str | None, yes: bool, dry_run: bool) -> None:
    """Deliver now what SUBSCRIBER holds: what waits after a failure, is quarantined or disabled."""

    def act(bus: Bus) -> str:
        lanes = sum(1 for _ in replay(bus, subscriber, lane))
        return f"{lanes} lanes of {subscriber} are due now"

    change(subscriber, "deliver now", act, yes=yes, dry_run=dry_run)

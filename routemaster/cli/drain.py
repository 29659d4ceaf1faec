from __future__ import annotations

import sys
import time

import click
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from routemaster.bus import Bus
from routemaster.cli.session import a_bus, console, number

LOOK_S = 0.5


@click.command()
@click.option("--timeout", "timeout_s", default=0.0, type=click.FloatRange(0), metavar="SECONDS",
              help="Give up after so long; 0 waits for ever.")  # fmt: skip
@click.pass_context
def command(ctx: click.Context, timeout_s: float) -> None:
    """Wait until everything queued for active subscribers is delivered.

    For before maintenance: stop the publishers, drain, stop the workers. Exit status 1 when there
    is something left at the end of the time.
    """
    give_up_s = time.monotonic() + timeout_s if timeout_s else float("inf")
    with a_bus() as bus:
        left = waiting(bus)
        with progress() as bar:
            task = bar.add_task("draining", total=max(1, left))
            while left and time.monotonic() < give_up_s:
                time.sleep(LOOK_S)
                left = waiting(bus)
                bar.update(task, completed=max(0, (bar.tasks[0].total or 1) - left))
        click.echo("drained" if not left else f"{number(left)} events are left")
        ctx.exit(1 if left else 0)


def waiting(bus: Bus) -> int:
    """Events of active subscribers: the others' wait for somebody to resume them."""
    names = [holder.name for holder in bus.lanes.holders()]
    return sum(one.queued for one in bus.subscribers.summaries(names) if one.state == "active")


def progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(),
               TextColumn("{task.completed:,.0f}/{task.total:,.0f} events"),
               TimeRemainingColumn())  # fmt: skip
    return Progress(*columns, console=console(), disable=not sys.stdout.isatty())

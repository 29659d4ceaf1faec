from __future__ import annotations

import sys
from collections.abc import Iterator

import click
from rich.progress import track

from routemaster.bus import Bus
from routemaster.cli.session import a_bus, json_option, print_json


@click.command()
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Look for what should not be (a lane without its job, a gauge that is not the truth), and
    repair it. Workers do so every minute.

    Exit status 1 when something was found.
    """
    with a_bus() as bus:
        found = list(findings(bus))
    if as_json:
        print_json(found)
    for row in [] if as_json else found:
        click.echo("repaired " + " ".join(f"{name}={value!r}" for name, value in row.items()))
    if not found and not as_json:
        click.echo("nothing to repair")
    ctx.exit(1 if found else 0)


def findings(bus: Bus) -> Iterator[dict[str, str]]:
    names = sorted(bus.directory.fresh().routes)
    for name in track(names, "auditing", transient=True, disable=not sys.stdout.isatty()):
        for what, lane in bus.lanes.audit(name):
            yield {"found": what, "subscriber": name, "lane": lane}
    for queue in (bus.main, bus.aux):
        for what, job in queue.audit():
            yield {"found": what, "queue": queue.name, "job": repr(job)}

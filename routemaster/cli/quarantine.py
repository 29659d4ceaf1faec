from __future__ import annotations

import click
from rich.table import Table

from routemaster.bus import Bus
from routemaster.cli.session import a_bus, age, console, json_option, print_json
from routemaster.domain.job import Job
from routemaster.errors import InvalidInput
from routemaster.store.jobs import Quarantined


@click.command()
@click.option("--release", is_flag=True, help="Try them all again, now.")
@json_option
def command(release: bool, as_json: bool) -> None:
    """Show the jobs that were set aside, because workers kept dying of them, and why."""
    with a_bus() as bus:
        found = [one for queue in (bus.main, bus.aux) for one in queue.quarantined()]
        now_ms = bus.clock.now_ms()
        released = [let_go(bus, one) for one in found] if release else []
    if as_json:
        print_json([row(one) for one in found])
    elif not found:
        click.echo("nothing is in quarantine")
    else:
        table = Table("queue", "job", "since", "reason")
        for one in found:
            table.add_row(one.queue, name(one.job), age(now_ms - one.at_ms), one.reason)
        console().print(table)
    if release and not as_json:
        click.echo(f"released {sum(released)}")


def let_go(bus: Bus, one: Quarantined) -> bool:
    return (bus.main if one.queue == bus.main.name else bus.aux).release(one.job)


def row(one: Quarantined) -> dict[str, object]:
    return {"queue": one.queue, "job": name(one.job), "since": one.at_ms, "reason": one.reason}


def name(packed: bytes) -> str:
    try:
        job = Job.load(packed)
    except InvalidInput:
        return repr(packed)
    return " ".join([job.name, *map(str, job.args)])

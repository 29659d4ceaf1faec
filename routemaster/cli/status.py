from __future__ import annotations

import time

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from routemaster.bus import Bus
from routemaster.cli.session import a_bus, age, console, json_option, number, print_json, size
from routemaster.metrics.gather import gather
from routemaster.metrics.sample import Sample

# One screen: those who hold most.
MOST_SUBSCRIBERS = 20


@click.command()
@json_option
@click.option("--watch", is_flag=True, help="Refresh until Ctrl-C.")
@click.option("--every", default=2.0, show_default=True, type=click.FloatRange(0.2, 3600),
              help="Seconds between two looks.")  # fmt: skip
def command(as_json: bool, watch: bool, every: float) -> None:
    """Show the bus on one screen: backlog, jobs, workers, memory, subscribers."""
    with a_bus() as bus:
        if as_json:
            print_json([sample_row(sample) for sample in gather(bus)])
        elif not watch:
            console().print(screen(bus))
        else:
            keep_showing(bus, every)


def keep_showing(bus: Bus, every_s: float) -> None:
    with Live(screen(bus), console=console(), screen=False) as live:
        try:
            while True:
                time.sleep(every_s)
                live.update(screen(bus))
        except KeyboardInterrupt:
            pass


def sample_row(sample: Sample) -> dict[str, object]:
    return {"name": sample.name, "kind": sample.kind.value, "value": sample.value,
            **dict(sample.tags)}  # fmt: skip


def screen(bus: Bus) -> Group:
    samples = gather(bus)
    names = [s.tags[0][1] for s in samples if s.name == "events.queued"]
    held = {s.tags[0][1]: s.value for s in samples if s.name == "events.queued"}
    busiest = sorted(names, key=lambda name: (-held[name], name))[:MOST_SUBSCRIBERS]
    left_out = len(names) - len(busiest)
    parts: list[RenderableType] = [overview(samples), subscribers(bus, busiest)]
    if left_out:
        parts.append(Text(f"and {left_out} subscribers that hold less"))
    return Group(*parts)


def overview(samples: list[Sample]) -> Table:
    def total(name: str, **tags: str) -> float:
        return sum(
            s.value for s in samples
            if s.name == name and tags.items() <= dict(s.tags).items()
        )  # fmt: skip

    oldest = max((s.value for s in samples if s.name == "batches.oldest_age_seconds"), default=0)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row(
        "workers", number(total("workers")), "memory",
        f"{size(total('redis.used_bytes'))} of {size(total('redis.max_bytes'))}",
    )  # fmt: skip
    table.add_row(
        "queued", f"{number(total('events.queued'))} events in "
        f"{number(total('batches.queued'))} batches",
        "oldest", age(oldest * 1000) if oldest else "-",
    )  # fmt: skip
    states = ("scheduled", "waiting", "instant", "pending", "quarantined")
    jobs = ", ".join(f"{number(total('jobs', queue='main', state=s))} {s}" for s in states)
    table.add_row("jobs", jobs, "published", number(total("events.published")))
    table.add_row(
        "delivered", number(total("events.delivered")), "dropped", number(total("events.dropped"))
    )
    return table


def subscribers(bus: Bus, names: list[str]) -> Table:
    seconds, _ = bus.link.call("TIME")
    table = Table("subscriber", "state", "health", "events", "batches", "oldest", "sent",
                  box=None, pad_edge=False)  # fmt: skip
    for column in table.columns[2:]:
        column.justify = "right"
    for one in bus.subscribers.summaries(names):
        oldest = age(int(seconds) * 1000 - one.oldest_ms) if one.oldest_ms else "-"
        style = "green" if one.state == "active" and one.health_points >= 90 else "yellow"
        table.add_row(one.name, one.state, f"[{style}]{one.health_points}[/]", number(one.queued),
                      number(one.batches), oldest, number(one.sent))  # fmt: skip
    return table

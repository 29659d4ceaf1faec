"""`routemaster demo-data`: an export to try the reports on, with known incidents in it."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

# Not where the bus exports to: what is made up must never be among what happened.
DEFAULT_OUTPUT = "var/demo"
# Fixed, so that the same words give the same files on any day. A Sunday.
LAST_DAY = "2026-11-15"
MOST_DAYS, MOST_SUBSCRIBERS = 366, 5000


@click.command()
@click.option("--days", default=14, show_default=True, type=click.IntRange(1, MOST_DAYS))
@click.option(
    "--subscribers", default=200, show_default=True, type=click.IntRange(1, MOST_SUBSCRIBERS)
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0),
              help="the same seed gives the same files")  # fmt: skip
@click.option("--output", default=DEFAULT_OUTPUT, show_default=True, metavar="FOLDER",
              help="a directory, or an object store's URL; must hold no export yet")  # fmt: skip
@click.option("--end", default=LAST_DAY, show_default=True, metavar="DATE",
              type=click.DateTime(["%Y-%m-%d"]), help="the last day")  # fmt: skip
def command(days: int, subscribers: int, seed: int, output: str, end: datetime) -> None:
    """Write an export as a bus would have: six datasets, daily and weekly rhythm, and outages,
    losses and anomalies, which are also listed in incidents.json."""
    try:
        from routemaster.demo.simulate import INCIDENTS_FILE, Plan, simulate
        from routemaster.domain.datasets import DATASETS
        from routemaster.export.folder import Folder
    except ImportError as missing:
        raise click.ClickException(
            f"{missing.name} is not installed: pip install 'routemaster[export]'"
        ) from None
    try:
        folder = Folder.of(output)
        if any(folder.entries(name) for name in DATASETS):
            raise click.ClickException(f"{output} holds an export already: give another --output")
        with bar() as bars:
            shown: dict[str, TaskID] = {}

            def progress(what: str, done: int, total: int) -> None:
                if what not in shown:
                    shown[what] = bars.add_task(what, total=total)
                bars.update(shown[what], completed=done)

            played = simulate(Plan(days, subscribers, seed, end.date()), folder, progress)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"cannot write to {output}: {error}") from None
    attempts = sum(len(one.attempts) for one in played.histories.values())
    at = f"{Path(output) / INCIDENTS_FILE}" if folder.is_local else folder.path(INCIDENTS_FILE)
    click.echo(
        f"{attempts:,} attempts of {subscribers} subscribers in {days} days are in {output}; "
        f"the {len(played.incidents)} incidents among them are in {at}"
    )


def bar() -> Progress:
    """On standard error, and only when somebody is there to see it."""
    return Progress(
        TextColumn("{task.description:>14}"), BarColumn(), TextColumn("{task.completed}"),
        TimeElapsedColumn(), console=Console(stderr=True), disable=not sys.stderr.isatty(),
        transient=True,
    )  # fmt: skip

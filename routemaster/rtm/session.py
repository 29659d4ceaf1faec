"""What every command is given: a client of the bus that was asked for, and a way to answer."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from routemaster.client import Client
from routemaster.rtm.settings_file import resolve

Row = Mapping[str, Any]

# How much `data` an event may have is for the bus to say.
MOST_DATA_BYTES = 1 << 20

COLOURS = {
    "SUCCESS": "green", "QUEUED": "yellow", "RUNNING": "cyan", "ERROR": "red", "DROPPED": "red",
    "active": "green", "paused": "yellow", "disabled": "red",
}  # fmt: skip


class Session:
    def __init__(self, client: Client, token: str, as_json: bool) -> None:
        self.client = client
        self.token = token
        self.as_json = as_json

    def rows(self, rows: Sequence[Row], *columns: str) -> None:
        """A table on a terminal, tab-separated lines elsewhere, or all there is as JSON."""
        if self.as_json:
            self.json(list(rows))
        elif sys.stdout.isatty():
            Console().print(as_table(rows, columns))
        else:
            for row in rows:
                click.echo("\t".join(shown(row.get(column)) for column in columns))

    def json(self, value: object) -> None:
        click.echo(json.dumps(value, indent=2 if sys.stdout.isatty() else None))

    def say(self, text: str) -> None:
        """For people: nothing for scripts that asked for JSON."""
        if not self.as_json:
            click.echo(text)


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Yields a function to be told how far it is; shown on a terminal only."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(
        *columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)


def with_bus(command: Callable[..., None]) -> Callable[..., None]:
    """The options common to all, turned into a Session as first argument."""

    @wraps(command)
    def run(bus: str | None, token: str | None, as_json: bool, **rest: Any) -> None:
        url, found = resolve(bus, token)
        try:
            client = Client(url, found, max_data_bytes=MOST_DATA_BYTES)
        except ValueError as problem:
            raise click.UsageError(str(problem)) from None
        with client:
            command(Session(client, found, as_json), **rest)

    for option in (
        click.option("--json", "as_json", is_flag=True, help="Answer in JSON."),
        click.option("-v", "--verbose", is_flag=True, expose_value=False, hidden=True),
        click.option(
            "-t", "--token", metavar="TOKEN|@NAME", help="An API token, or one named in .rtmrc."
        ),
        click.option(
            "-b", "--bus", metavar="DOMAIN|@NAME", help="The bus, or one named in .rtmrc."
        ),
    ):
        run = option(run)
    return run


def as_table(rows: Sequence[Row], columns: Sequence[str]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        is_number = any(isinstance(row.get(column), int) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(coloured(shown(row.get(column))) for column in columns))
    return table


def coloured(text: str) -> Any:
    from rich.text import Text

    return Text(text, style=COLOURS.get(text, ""))  # Text, because [brackets] are not markup here


def shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    # A terminal obeys what a topic's publisher or a subscriber wrote; nobody's tab is a column.
    return "".join(c if c.isprintable() else "?" for c in str(value))

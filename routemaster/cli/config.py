from __future__ import annotations

import click
from rich.table import Table

from routemaster.cli.session import console, json_option, print_json
from routemaster.dotenv import read_settings
from routemaster.settings import SETTINGS


@click.command()
@json_option
def command(as_json: bool) -> None:
    """Show the effective settings of this folder, secrets masked."""
    shown = read_settings().masked()
    if as_json:
        print_json({row.env: shown[row.field] for row in SETTINGS})
        return
    table = Table("setting", "value", "meaning", box=None, pad_edge=False)
    for row in SETTINGS:
        table.add_row(row.env, text_of(shown[row.field]), row.doc)
    console().print(table)


def text_of(value: object) -> str:
    if value is None or value == "" or value == ():
        return "-"
    if isinstance(value, tuple):
        return ",".join(str(part) for part in value)
    return str(value).lower() if isinstance(value, bool) else str(value)

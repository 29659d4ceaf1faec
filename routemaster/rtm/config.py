from __future__ import annotations

import json

import click

from routemaster.rtm.settings_file import find, read


@click.command("config")
@click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")
def command(as_json: bool) -> None:
    """The buses that .rtmrc (here, or at home) names."""
    path = find()
    if path is None:
        raise click.ClickException(
            'there is no .rtmrc here or at home; it holds [NAME], bus = "...", token = "..."'
        )
    rows = [
        {"name": f"@{name}", "bus": place.bus, "has_token": place.token is not None}
        for name, place in read(path).items()
    ]
    if as_json:
        click.echo(json.dumps(rows))
        return
    click.echo(f"{path}", err=True)
    for row in rows:
        click.echo(f"{row['name']}\t{row['bus'] or '-'}\t{'token' if row['has_token'] else '-'}")

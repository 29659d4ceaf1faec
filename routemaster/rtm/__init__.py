"""The `rtm` command, spelled like the original's. Needs only what the extra `client` names."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from routemaster import __version__
from routemaster.client.errors import BusError

# Command -> the line that `rtm --help` shows, so that listing them imports none.
COMMANDS = {
    "pub": "publish an event",
    "load": "publish many events from a file",
    "listen": "show a topic's events as they come, or relay them to a local URL",
    "topic": "list and delete topics",
    "sub": "add, delete, list, pause and resume subscriptions",
    "ops": "what became of deliveries",
    "replay": "deliver again now what still waits",
    "token": "add, delete and list API tokens",
    "outbox": "send what transactions left in an outbox table",
    "bench": "measure how fast this bus takes events",
    "config": "show the buses named in .rtmrc",
    "completion": "print the shell's completion script",
}


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"{__name__}.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Exit status 1 for what failed, 2 for what was asked wrongly."""
        try:
            return super().invoke(ctx)
        except BusError as problem:
            raise click.ClickException(str(problem)) from problem


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="rtm")
def main() -> None:
    """Speak to a Routemaster bus."""

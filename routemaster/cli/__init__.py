"""The `routemaster` command: one module of this package per subcommand, imported when it is used.

A module `routemaster/cli/NAME.py` holds a click command (or group) called `command`. Dashes in a
subcommand's name are underscores in its module's.
"""

from __future__ import annotations

from importlib import import_module

import click

from routemaster import __version__

# Subcommand -> the line that `routemaster --help` shows, so that listing them imports none.
COMMANDS: dict[str, str] = {
    "start": "run the whole bus",
    "web": "run the web process",
    "worker": "run a worker",
    "redis": "run the bus's own Redis",
    "check": "look at everything that can be wrong, and say what to do",
    "status": "show the bus on one screen",
    "config": "show the effective settings, secrets masked",
    "drain": "wait until everything queued is delivered",
    "pause": "deliver nothing more to a subscriber",
    "resume": "deliver to a subscriber again",
    "replay": "deliver now what a subscriber holds",
    "drop": "give up what a subscriber holds",
    "quarantine": "show the jobs that workers died of, and try them again",
    "audit": "look for what should not be, and repair it",
    "export": "write what the bus did to files for reports; compact and drop them",
    "demo-data": "make an export to try the reports on, with known incidents in it",
}


class Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"{__name__}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not COMMANDS:
            return
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="routemaster")
def main() -> None:
    """Run, look at and operate a Routemaster bus."""

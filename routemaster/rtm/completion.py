from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Prints a script: `source <(rtm completion bash)`, or `rtm completion fish | source`."""
    from routemaster.rtm import main

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "rtm", "_RTM_COMPLETE").source())

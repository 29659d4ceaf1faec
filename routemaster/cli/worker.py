from __future__ import annotations

import click


@click.command()
def command() -> None:
    """Run a worker, which delivers. Any number may run."""
    from routemaster.worker.__main__ import main

    main()

from __future__ import annotations

import click


@click.command()
def command() -> None:
    """Run the web process, which serves the HTTP API."""
    from routemaster.web.__main__ import main

    main()

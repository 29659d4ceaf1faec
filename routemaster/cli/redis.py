from __future__ import annotations

import click


@click.command()
def command() -> None:
    """Run the bus's own Redis, in ROUTEMASTER_DATA_DIR."""
    from routemaster.redis_server import main

    main()

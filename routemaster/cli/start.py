from __future__ import annotations

import click


@click.command()
def command() -> None:
    """Run the whole bus: web, worker and, without ROUTEMASTER_REDIS_URL, Redis."""
    from routemaster.start import main

    main()

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from routemaster.bus import Bus, assemble
from routemaster.clock import Clock
from routemaster.settings import Settings


@contextmanager
def bus_maker() -> Iterator[Callable[..., Bus]]:
    """Makes busses, and hangs up on Redis for all of them at the end."""
    made: list[Bus] = []

    def make(settings: Settings, clock: Clock | None = None) -> Bus:
        made.append(assemble(settings, clock))
        return made[-1]

    yield make
    for bus in made:
        bus.link.close()

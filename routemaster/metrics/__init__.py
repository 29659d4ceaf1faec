"""Where the numbers go. An adapter is added here and in the setting's list of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from routemaster.metrics.print import PrintAdapter
from routemaster.metrics.sample import Sample
from routemaster.settings import Settings


class Adapter(Protocol):
    def send(self, samples: Sequence[Sample]) -> None: ...


def adapters(settings: Settings) -> list[Adapter]:
    return [_adapter(name, settings) for name in settings.metric_adapters]


def _adapter(name: str, settings: Settings) -> Adapter:
    if name == "print":
        return PrintAdapter()
    # Here and not above: importing the client takes a tenth of a second that few need.
    from routemaster.metrics.statsd import StatsdAdapter

    return StatsdAdapter(*settings.statsd_address)

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from routemaster.bus import Bus
from routemaster.metrics import Adapter
from routemaster.metrics.gather import gather

log = logging.getLogger(__name__)


class Monitor:
    """Sends every gauge and counter to the adapters."""

    def __init__(self, bus: Bus, adapters: Sequence[Adapter]) -> None:
        self._bus = bus
        self._adapters = adapters

    def run(self, is_over: Callable[[], bool]) -> None:
        samples = gather(self._bus)
        for adapter in self._adapters:
            if is_over():
                return
            try:
                adapter.send(samples)
            except Exception:  # a server of metrics that is away must not keep the others waiting
                log.exception("cannot report adapter=%s", type(adapter).__name__)

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from routemaster.bus import Bus

if TYPE_CHECKING:
    from routemaster.export.kit import Exporter

TIDY_MS = 3_600_000

log = logging.getLogger(__name__)


class Export:
    """Writes what is new to files, for reports; once an hour drops what is past retention."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._exporter: Exporter | None = None
        self._tidy_at_ms = 0

    def run(self, is_over: Callable[[], bool]) -> None:
        from routemaster.export import kit  # see there why not above

        bus = self._bus
        try:
            self._exporter = self._exporter or kit.Exporter(bus)
            self._exporter.turn(is_over)
            if bus.clock.mono_ms() >= self._tidy_at_ms and not is_over():
                self._tidy_at_ms = bus.clock.mono_ms() + TIDY_MS
                now_ms, days = bus.clock.now_ms(), bus.settings.export_retention_days
                kit.tidy(self._exporter.folder, now_ms, days)
        except kit.FAULTS as error:
            log.error("cannot export why=%s", kit.said(error, bus.settings.export_url or ""))

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from routemaster.bus import Bus

if TYPE_CHECKING:  # pyarrow is an extra, and takes a fifth of a second to import
    from routemaster.export.exporter import Exporter

log = logging.getLogger(__name__)


class Export:
    """Writes what is new to files, for reports."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._exporter: Exporter | None = None

    def run(self, is_over: Callable[[], bool]) -> None:
        from routemaster.export.exporter import FAULTS, Exporter, said

        try:
            self._exporter = self._exporter or Exporter(self._bus)
            self._exporter.turn(is_over)
        except FAULTS as error:
            url = self._bus.settings.export_url or ""
            log.error("cannot export why=%s", said(error, url))

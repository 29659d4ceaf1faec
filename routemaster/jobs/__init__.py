"""Auxiliary jobs by name. Each is bounded: it looks at `is_over` between its steps and leaves the
rest to the next time, which the tickers see to."""

from __future__ import annotations

from collections.abc import Callable

from routemaster.bus import Bus, is_exporting
from routemaster.jobs.autodrop import Autodrop
from routemaster.jobs.export import Export
from routemaster.jobs.monitor import Monitor
from routemaster.jobs.series import Series
from routemaster.metrics import adapters
from routemaster.settings import Settings
from routemaster.store.series import MINUTE_MS

IsOver = Callable[[], bool]
Work = Callable[[IsOver], None]

AUTODROP_EVERY_MS = 5000


def jobs(bus: Bus) -> dict[str, Work]:
    return {
        "monitor": Monitor(bus, adapters(bus.settings)).run,
        "autodrop": Autodrop(bus).run,
        "series": Series(bus).run,
        "export": Export(bus).run,
    }


def intervals_ms(settings: Settings) -> dict[str, int]:
    """How often each is due."""
    every = {"autodrop": AUTODROP_EVERY_MS}
    if settings.dashboard:
        every["series"] = MINUTE_MS
    if is_exporting(settings):
        every["export"] = round(settings.export_interval_s * 1000)
    if settings.metric_adapters:
        every["monitor"] = round(settings.monitor_interval_s * 1000)
    return every

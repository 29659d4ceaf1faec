"""A timer's work, in every worker: never jobs in the queues they repair."""

from __future__ import annotations

import logging

from routemaster.bus import Bus
from routemaster.errors import StoreUnavailable
from routemaster.store.jobs import JobQueue

AUDIT_EVERY_MS = 60_000

log = logging.getLogger(__name__)


class Housekeeping:
    def __init__(self, bus: Bus, worker: str) -> None:
        self._bus = bus
        self._worker = worker
        self._audit_at_ms = 0

    def step(self) -> None:
        bus = self._bus
        bus.workers.beat(self._worker)
        for queue in (bus.main, bus.aux):
            self._scrub(queue)
        bus.lanes.sweep()
        if bus.clock.mono_ms() >= self._audit_at_ms:
            self._audit_at_ms = bus.clock.mono_ms() + AUDIT_EVERY_MS
            self._audit()

    def _scrub(self, queue: JobQueue) -> None:
        moved, quarantined = queue.scrub(quarantine_after=self._bus.settings.max_reclaims)
        if moved or quarantined:
            log.warning("scrubbed queue=%s moved=%s quarantined=%s", queue.name, moved, quarantined)
        for one in queue.quarantined() if quarantined else ():
            log.error("quarantined queue=%s job=%r reason=%r", one.queue, one.job, one.reason)

    def goodbye(self) -> None:
        try:
            self._bus.workers.leave(self._worker)
        except StoreUnavailable:
            log.warning("could not sign off worker=%s", self._worker)

    def _audit(self) -> None:
        bus = self._bus
        for subscriber in sorted(bus.directory.fresh().routes):
            for what, lane in bus.lanes.audit(subscriber):
                log.error("audit found=%r subscriber=%s lane=%r", what, subscriber, lane)
        for queue in (bus.main, bus.aux):
            for what, job in queue.audit():
                log.error("audit found=%r queue=%s job=%r", what, queue.name, job)

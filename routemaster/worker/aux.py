"""The queue `aux`: one thread in each worker keeps its jobs coming and runs them, one at a time."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping

from routemaster.bus import Bus
from routemaster.domain.job import Job
from routemaster.errors import StoreUnavailable
from routemaster.jobs import Work, intervals_ms, jobs
from routemaster.store.events import uid
from routemaster.store.jobs import Lease, Taken
from routemaster.worker.tickers import Tickers

LOOK_MS = 1000
# What a job may take, well within its lease: nobody has to renew it.
RUN_MS = 5000
LEASE_MS = 30_000

log = logging.getLogger(__name__)


class AuxConsumer:
    def __init__(
        self, bus: Bus, worker: str, works: Mapping[str, Work], stop: threading.Event
    ) -> None:
        self._bus = bus
        self._worker = worker
        self._works = works
        self._stop = stop
        self._repeat = ""  # the lease id of a take whose reply was lost
        self._done: Lease | None = None  # and not acknowledged yet

    def step(self) -> Taken:
        """Runs one job, if one is due."""
        self._acknowledge()
        taken = self._take()
        for lease in taken.leases:
            self._run(lease.job)
            self._done = lease
        self._acknowledge()
        return taken

    def _take(self) -> Taken:
        repeated, lease_id = bool(self._repeat), self._repeat or uid()
        self._repeat = lease_id
        taken = self._bus.aux.take(self._worker, lease_id, LEASE_MS, 1, repeated=repeated)
        self._repeat = ""
        return taken

    def _run(self, packed: bytes) -> None:
        """A job that fails is done all the same: the tickers bring it again."""
        give_up_ms = self._bus.clock.mono_ms() + RUN_MS
        try:
            name = Job.load(packed).name
            if name not in self._works:
                log.error("unknown job name=%r", name)
                return
            self._works[name](
                lambda: self._stop.is_set() or self._bus.clock.mono_ms() >= give_up_ms
            )
        except StoreUnavailable as error:
            log.warning("job broken off job=%r reason=%s", packed, error.reason)
        except Exception:
            log.exception("job failed job=%r", packed)

    def _acknowledge(self) -> None:
        """Fenced, so it may be said twice: a lost reply does no harm."""
        if self._done is not None:
            self._bus.aux.ack(self._done.job, self._done.fence)
            self._done = None


def consume(consumer: AuxConsumer, tickers: Tickers, stop: threading.Event) -> None:
    wait_ms: float = 0
    while not stop.wait(wait_ms / 1000):
        wait_ms = LOOK_MS
        try:
            taken = consumer.step()
            due_ms = min(tickers.step(taken.now_ms), taken.next_due_ms or math.inf)
            wait_ms = max(0, min(LOOK_MS, due_ms - taken.now_ms))
        except StoreUnavailable as error:
            log.warning("store unavailable reason=%s", error.reason)
        except Exception:  # this thread serves the whole process: nobody would miss it in time
            log.exception("aux step failed")


def start(bus: Bus, worker: str, stop: threading.Event) -> threading.Thread:
    consumer = AuxConsumer(bus, worker, jobs(bus), stop)
    tickers = Tickers(bus, intervals_ms(bus.settings))
    # A daemon: a name server that does not answer must not hold up the end of the process.
    thread = threading.Thread(
        target=consume, args=(consumer, tickers, stop), name="aux", daemon=True
    )
    thread.start()
    return thread

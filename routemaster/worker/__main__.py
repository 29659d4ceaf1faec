"""The worker process: `python -m routemaster.worker`; any number of them share the work."""

from __future__ import annotations

import logging
import os
import random
import signal
import socket
import threading

from routemaster import bus as bus_module
from routemaster import checks, log, reporter
from routemaster.bus import Bus
from routemaster.delivery.courier import Courier, CourierRules
from routemaster.dotenv import read_settings
from routemaster.errors import StoreUnavailable
from routemaster.settings import Settings
from routemaster.store.wake import WakeUps
from routemaster.worker import aux
from routemaster.worker.dispatcher import Dispatcher
from routemaster.worker.housekeeping import Housekeeping

# honcho kills after 5 s what has not ended by itself.
GRACE_MS = 3500
TURN_S = 1.0

logger = logging.getLogger("routemaster.worker")


class Stop:
    """Set by a signal; wakes whoever waits for files."""

    def __init__(self) -> None:
        self.is_set = threading.Event()
        self.readable, self._writable = os.pipe()
        os.set_blocking(self.readable, False)
        os.set_blocking(self._writable, False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.set())

    def set(self) -> None:
        if not self.is_set.is_set():  # a second signal says nothing new
            self.is_set.set()
            os.write(self._writable, b".")

    def heard(self) -> None:
        """Once is enough: a pipe left full would wake every wait of the grace time."""
        os.read(self.readable, 64)


def rules(settings: Settings) -> CourierRules:
    return CourierRules(
        timeout_s=settings.timeout_s,
        connect_timeout_s=settings.connect_timeout_s,
        ssl_verify=settings.ssl_verify,
        allowed_networks=settings.callback_networks,
        kept_connections=4 * settings.worker_threads,
    )


def keep_house(housekeeping: Housekeeping, stop: threading.Event) -> None:
    while not stop.wait(TURN_S):
        try:
            housekeeping.step()
        except StoreUnavailable as error:
            logger.warning("store unavailable reason=%s", error.reason)
        except Exception:  # without this thread nobody would take a dead worker's jobs back
            logger.exception("a bug in housekeeping")
    housekeeping.goodbye()


def deliver(bus: Bus, dispatcher: Dispatcher, stop: Stop) -> None:
    while not stop.is_set.is_set():
        try:
            dispatcher.step()
        except Exception:  # honcho stops everything when one process ends: a bug must not
            logger.exception("a bug in a turn")
            stop.is_set.wait(TURN_S)
    stop.heard()
    give_up_ms = bus.clock.mono_ms() + GRACE_MS
    while dispatcher.in_flight and bus.clock.mono_ms() < give_up_ms:
        dispatcher.step(taking=False)
    try:
        dispatcher.give_back()
    except StoreUnavailable as error:  # the leases run out, and come back by themselves
        logger.warning("could not give back reason=%s", error.reason)


def main() -> None:
    settings = read_settings()
    log.configure(settings.log_level, "worker")
    reporter.install(settings, "worker")
    bus = bus_module.assemble(settings)
    checks.wait_for_redis(bus)
    stop = Stop()
    name = f"{socket.gethostname()}.{os.getpid()}"
    courier = Courier(rules(settings), bus.clock)
    courier.listen(stop.readable)
    wake_ups = WakeUps(bus.link, bus.keys)
    dispatcher = Dispatcher(bus, courier, wake_ups, name, random.Random())
    house = threading.Thread(
        target=keep_house, args=(Housekeeping(bus, name), stop.is_set), name="housekeeping"
    )
    house.start()
    auxiliary = aux.start(bus, name, stop.is_set)
    logger.info("working slots=%s", settings.worker_threads)
    deliver(bus, dispatcher, stop)
    house.join()
    auxiliary.join(TURN_S)
    dispatcher.close()
    courier.close()
    wake_ups.close()
    bus.link.close()
    logger.info("stopped")


if __name__ == "__main__":
    main()

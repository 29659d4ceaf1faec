"""Requests that wait for something to pull, and hold no thread meanwhile.

A message on the channel of a subscriber lets the one look again that has the least time left. One
thread for all who wait: it only listens and calls; looking and answering is done where requests
always are.
"""

from __future__ import annotations

import logging
import os
import select
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from routemaster.bus import Bus
from routemaster.errors import StoreUnavailable
from routemaster.store.channels import Channels
from routemaster.store.events import uid

# Where an application keeps its room, and a request its turn.
ROOM, TURN = "routemaster.room", "routemaster.turn"
# How often what came due is looked at, should no worker do it.
LOOK_MS = 1000
STORE_DOWN_S = 0.2
# Channels listened to although nobody waits: a puller is back in a moment.
SPARE_CHANNELS = 1000

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Place:
    """`ticket` says what had been heard before the last look; None: nobody was listening."""

    subscriber: str
    ticket: int | None
    until_ms: int
    ready: Callable[[], None] = field(repr=False)


@dataclass(eq=False)
class Turn:
    """What a request that waits knows when it is looked at again. `may_park` where a server knows
    how to take its thread away."""

    may_park: bool = False
    until_ms: int | None = None
    lease_id: str = field(default_factory=uid)


class Parked(BaseException):
    """Raised out of a request, past every handler of errors: its thread is free again."""

    def __init__(self, subscriber: str, ticket: int | None, until_ms: int) -> None:
        super().__init__()
        self.subscriber = subscriber
        self.ticket = ticket
        self.until_ms = until_ms


class Room:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._prefix = bus.keys.waiting_prefix
        self._channels = Channels(bus.link)
        self._lock = threading.Lock()
        self._places: dict[str, list[Place]] = {}
        self._heard: dict[str, int] = {}  # messages, for each subscriber that is listened for
        self._count = 0
        self._promote_at_ms = 0
        self._thread: threading.Thread | None = None
        self._readable, self._writable = -1, -1
        self.is_closing = False

    @property
    def is_full(self) -> bool:
        return self._count >= self._bus.settings.max_waiting

    def ticket(self, subscriber: str) -> int | None:
        return self._heard.get(subscriber)

    def wait(self, turn: Turn, subscriber: str, ticket: int | None, until_ms: int) -> None:
        """Until it is worth looking again, or too late."""
        if turn.may_park:
            raise Parked(subscriber, ticket, until_ms)
        ready = threading.Event()
        self.enter(Place(subscriber, ticket, until_ms, ready.set))
        ready.wait()

    def enter(self, place: Place) -> None:
        with self._lock:
            heard = self._heard.get(place.subscriber)
            # What was said between the look and now would never be heard of again.
            if place.ticket == heard and not self.is_closing:
                self._begin()
                self._places.setdefault(place.subscriber, []).append(place)
                self._count += 1
                self._poke()
                return
        place.ready()

    def leave(self, place: Place) -> bool:
        """False when it was called a moment ago."""
        with self._lock:
            return self._take_out(place)

    def close(self) -> None:
        """Everybody is called once more. No lock: this may be called in a signal's handler."""
        self.is_closing = True
        if self._thread is not None:
            self._poke()

    def _begin(self) -> None:
        # Not before somebody waits: most processes of most busses never need it.
        if self._thread is None:
            self._readable, self._writable = os.pipe()
            os.set_blocking(self._readable, False)
            os.set_blocking(self._writable, False)
            self._thread = threading.Thread(target=self._run, name="waiting", daemon=True)
            self._thread.start()

    def _poke(self) -> None:
        try:
            os.write(self._writable, b".")
        except BlockingIOError:
            pass  # it is full of pokes

    def _take_out(self, place: Place) -> bool:
        row = self._places.get(place.subscriber)
        if row is None or place not in row:
            return False
        row.remove(place)
        if not row:
            del self._places[place.subscriber]
        self._count -= 1
        return True

    def _run(self) -> None:
        while not self.is_closing:
            try:
                self._step()
            except StoreUnavailable as error:
                log.warning("store unavailable reason=%s", error.reason)
                self._bus.clock.sleep(STORE_DOWN_S)
                self._forget()
            except Exception:  # without this thread everybody would wait in vain
                log.exception("a bug in the waiting room")
                self._bus.clock.sleep(STORE_DOWN_S)
        self._channels.close()
        self._call(self._everybody())

    def _step(self) -> None:
        poll = select.poll()  # not select(): there may be more than 1,024 files
        poll.register(self._readable, select.POLLIN)
        redis = -1
        if self._count or self._channels.is_connected:
            redis = self._channels.listen_to(self._wanted())
            poll.register(redis, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(self._pause_ms())}
        if self._readable in ready:
            os.read(self._readable, 4096)
        if redis in ready:
            self._hear()
        self._call(self._expired())
        self._promote()

    def _wanted(self) -> set[str]:
        with self._lock:
            names = set(self._places)
        wanted = {self._prefix + name for name in names}
        if len(self._channels.wanted) < SPARE_CHANNELS:
            wanted |= self._channels.wanted
        else:
            self._heard = {name: n for name, n in self._heard.items() if name in names}
        return wanted

    def _pause_ms(self) -> int | None:
        with self._lock:
            untils = [place.until_ms for row in self._places.values() for place in row]
        if not untils:
            return None
        now_ms = self._bus.clock.mono_ms()
        return max(0, min(min(untils), self._promote_at_ms) - now_ms)

    def _hear(self) -> None:
        for heard in self._channels.read():
            name = heard.channel.removeprefix(self._prefix)
            with self._lock:
                self._heard[name] = self._heard.get(name, 0) + 1
                row = sorted(self._places.get(name, ()), key=lambda place: place.until_ms)
            # Who looked before anybody listened looks once more.
            self._call(row if heard.is_begun else row[:1])

    def _expired(self) -> list[Place]:
        now_ms = self._bus.clock.mono_ms()
        return [place for place in self._everybody() if place.until_ms <= now_ms]

    def _everybody(self) -> list[Place]:
        with self._lock:
            return [place for row in self._places.values() for place in row]

    def _forget(self) -> None:
        """The connection was lost, and what was said meanwhile: everybody looks."""
        self._heard = {}
        self._call(self._everybody())

    def _call(self, places: Iterable[Place]) -> None:
        for place in places:
            with self._lock:
                is_here = self._take_out(place)
            if is_here:
                place.ready()

    def _promote(self) -> None:
        now_ms = self._bus.clock.mono_ms()
        if self._count and now_ms >= self._promote_at_ms:
            self._promote_at_ms = now_ms + LOOK_MS
            self._bus.pulls.promote()

"""Topics' streams, as Server-Sent Events: one thread per process writes to all who follow one.

It never waits for a reader: what a socket does not take at once lies in the reader's buffer, and
when that is full the reader misses events, and is told how many.
"""

from __future__ import annotations

import logging
import os
import selectors
import threading
from collections.abc import Callable

from routemaster.bus import Bus
from routemaster.errors import StoreUnavailable
from routemaster.store.channels import Channels
from routemaster.store.live import told
from routemaster.store.table import Table
from routemaster.web.reader import Reader

STREAMS = "routemaster.streams"
# How long a revoked token, or a deleted topic, may still be read.
CHECK_MS = 1_000
HEARTBEAT_MS = 15_000
STORE_DOWN_MS = 500

log = logging.getLogger(__name__)


class Streamed(BaseException):
    """Raised out of a request, past every handler of errors: from now on its socket is written to
    by the streams' thread."""

    def __init__(self, topic: str, may_read: Callable[[Table], bool], last: int | None) -> None:
        super().__init__()
        self.topic = topic
        self.may_read = may_read
        self.last = last


class Streams:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._channels = Channels(bus.link)
        self._lock = threading.Lock()
        self._coming: list[Reader] = []
        self._readers: list[Reader] = []  # the thread's own
        self._count = 0
        self._redis: int | None = None
        self._begun: set[str] = set()  # channels of which no message is missed
        self._check_at_ms = self._beat_at_ms = self._heartbeat_at_ms = self._connect_at_ms = 0
        self._thread: threading.Thread | None = None
        self._writable = -1
        self._is_closing = False

    @property
    def is_full(self) -> bool:
        return self._count >= self._bus.settings.max_streams

    def add(self, reader: Reader) -> None:
        with self._lock:
            if self._thread is None:
                self._begin()
            self._coming.append(reader)
            self._count += 1
        self._poke()

    def close(self) -> None:
        """No lock: this may be called in a signal's handler."""
        self._is_closing = True
        if self._thread is not None:
            self._poke()

    def _begin(self) -> None:
        self._selector = selectors.DefaultSelector()
        readable, self._writable = os.pipe()
        os.set_blocking(readable, False)
        os.set_blocking(self._writable, False)
        self._selector.register(readable, selectors.EVENT_READ, "poke")
        self._thread = threading.Thread(target=self._run, name="streams", daemon=True)
        self._thread.start()

    def _poke(self) -> None:
        try:
            os.write(self._writable, b".")
        except BlockingIOError:
            pass  # it is full of pokes

    def _run(self) -> None:
        while not self._is_closing:
            try:
                self._step()
            except StoreUnavailable as error:
                log.warning("store unavailable reason=%s", error.reason)
                self._lose_redis()
            except Exception:  # without this thread every stream would stand still
                log.exception("a bug in the streams")
                self._bus.clock.sleep(STORE_DOWN_MS / 1000)
        self._take_in()
        for reader in list(self._readers):
            self._finish(reader, "stopping")
        self._channels.close()

    def _step(self) -> None:
        self._take_in()
        self._listen()
        for key, events in self._selector.select(self._pause_ms() / 1000):
            if key.data == "poke":
                os.read(key.fd, 4096)
            elif key.data == "redis":
                self._hear()
            elif events & selectors.EVENT_READ and key.data.has_left():
                self._drop(key.data)
            elif events & selectors.EVENT_WRITE:
                self._write(key.data)
        self._check()

    def _take_in(self) -> None:
        with self._lock:
            coming, self._coming = self._coming, []
        for reader in coming:
            self._readers.append(reader)
            self._selector.register(reader.sock, selectors.EVENT_READ, reader)
            if self._channel(reader) in self._begun:
                self._go_live(self._channel(reader))

    def _channel(self, reader: Reader) -> str:
        return self._bus.live.channel(reader.topic)

    def _listen(self) -> None:
        """To the topics that are followed, and to no other."""
        now_ms = self._bus.clock.mono_ms()
        if now_ms < self._connect_at_ms or not (self._readers or self._redis is not None):
            return
        wanted = {self._channel(reader) for reader in self._readers}
        self._begun &= wanted
        descriptor = self._channels.listen_to(wanted)
        if self._redis is None:
            self._redis = descriptor
            self._selector.register(descriptor, selectors.EVENT_READ, "redis")
        if self._readers and now_ms >= self._beat_at_ms:
            self._bus.live.beat()
            self._beat_at_ms = now_ms + CHECK_MS

    def _lose_redis(self) -> None:
        """The readers stay: by the numbers they will see what they missed."""
        if self._redis is not None:
            self._selector.unregister(self._redis)
            self._redis = None
        self._channels.close()
        self._begun.clear()
        for reader in [reader for reader in self._readers if not reader.is_live]:
            self._finish(reader, "unavailable")
        self._connect_at_ms = self._bus.clock.mono_ms() + STORE_DOWN_MS

    def _hear(self) -> None:
        for heard in self._channels.read():
            if heard.is_begun:
                self._begun.add(heard.channel)
                self._go_live(heard.channel)
            else:
                self._pass_on(heard.channel, heard.payload)

    def _go_live(self, channel: str) -> None:
        # Publishing tells before the reader hears that it does.
        self._bus.live.beat()
        for reader in self._of(channel):
            if not reader.is_live:
                reader.begin()
                self._write(reader)

    def _pass_on(self, channel: str, payload: bytes) -> None:
        news = told(payload)
        for reader in self._of(channel) if news else ():
            if news and reader.is_live:
                reader.tell(news)
                self._write(reader)

    def _of(self, channel: str) -> list[Reader]:
        return [reader for reader in self._readers if self._channel(reader) == channel]

    def _write(self, reader: Reader) -> None:
        try:
            is_done = reader.send()
        except OSError:
            self._drop(reader)
            return
        wanted = selectors.EVENT_READ | (0 if is_done else selectors.EVENT_WRITE)
        if self._selector.get_key(reader.sock).events != wanted:
            self._selector.modify(reader.sock, wanted, reader)

    def _pause_ms(self) -> int:
        if not self._readers:
            return HEARTBEAT_MS
        return max(0, min(self._check_at_ms - self._bus.clock.mono_ms(), STORE_DOWN_MS))

    def _check(self) -> None:
        now_ms = self._bus.clock.mono_ms()
        if not self._readers or now_ms < self._check_at_ms:
            return
        self._check_at_ms = now_ms + CHECK_MS
        is_beat = now_ms >= self._heartbeat_at_ms
        if is_beat:
            self._heartbeat_at_ms = now_ms + HEARTBEAT_MS
        table = self._bus.directory.fresh()
        for reader in list(self._readers):
            if not reader.may_read(table):
                self._finish(reader, "the token is not known any more")
            elif reader.topic not in table.topics:
                self._finish(reader, "the topic was deleted")
            elif is_beat and not reader.beat():
                self._drop(reader)
            else:
                self._write(reader)

    def _finish(self, reader: Reader, why: str) -> None:
        reader.end(why)
        try:
            reader.send()
        except OSError:
            pass  # it has gone
        self._drop(reader)

    def _drop(self, reader: Reader) -> None:
        if reader in self._readers:
            self._readers.remove(reader)
            self._selector.unregister(reader.sock)
            with self._lock:
                self._count -= 1
            reader.ended()

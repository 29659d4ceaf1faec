"""One follower of a topic's stream: what it is still to be sent, never more than a limit."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from routemaster.store.live import Told
from routemaster.store.table import Table

# A reader that is so far behind misses what comes next, and is told how much that was.
MOST_BYTES = 256 * 1024
# And what the kernel keeps for it, which would grow to megabytes.
KERNEL_BYTES = 64 * 1024
HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
    b"X-Accel-Buffering: no\r\nConnection: close\r\n\r\nretry: 2000\n: live\n\n"
)
HEARTBEAT = b":\n\n"
UNAVAILABLE = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    b'Connection: close\r\n\r\n{"error":"the bus cannot reach its store, try again"}'
)


@dataclass(eq=False)
class Reader:
    topic: str
    sock: socket.socket
    may_read: Callable[[Table], bool]
    ended: Callable[[], None] = field(repr=False)
    # The number of the last event that it has, or had in an earlier connection.
    last: int | None = None
    is_live: bool = False
    buffer: bytearray = field(default_factory=bytearray, repr=False)
    sent: int = 0
    sent_before: int = -1

    def __post_init__(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BYTES)

    def begin(self) -> None:
        self.is_live = True
        self.buffer += HEAD

    def tell(self, told: Told) -> None:
        """As many of the events as there is room for."""
        number = told.before
        for event in told.events:
            number += 1
            if len(self.buffer) + len(event) > MOST_BYTES:
                return
            self._notice_gap(number)
            self.buffer += b"id: %d\ndata: %b\n\n" % (number, event)
            self.last = number

    def _notice_gap(self, number: int) -> None:
        # A smaller number than before: the topic was deleted and is counted anew.
        if self.last is not None and number > self.last + 1:
            skipped = {"events": number - self.last - 1}
            self.buffer += b"event: skipped\ndata: %b\n\n" % json.dumps(skipped).encode()

    def end(self, why: str) -> None:
        if not self.is_live:
            self.buffer += UNAVAILABLE
        else:
            self.buffer += b"event: end\ndata: %b\n\n" % json.dumps({"reason": why}).encode()

    def send(self) -> bool:
        """What the socket takes now. Raises OSError when the reader has gone."""
        while self.buffer:
            try:
                sent = self.sock.send(memoryview(self.buffer)[: 1 << 16].tobytes())
            except BlockingIOError:
                return False
            del self.buffer[:sent]
            self.sent += sent
        return True

    def beat(self) -> bool:
        """A sign of life; False for a reader that took nothing since the last."""
        is_stuck = bool(self.buffer) and self.sent == self.sent_before
        self.sent_before = self.sent
        if not self.buffer:
            self.buffer += HEARTBEAT
        return not is_stuck

    def has_left(self) -> bool:
        """It has nothing more to say: what it sends is dropped."""
        try:
            return not self.sock.recv(4096)
        except BlockingIOError:
            return False
        except OSError:
            return True

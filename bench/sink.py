"""A subscriber in a process of its own, that answers after MS: `python -m bench.sink [MS]`.

It prints its port. POST anything: 200, and the arrival of every event whose url ends in a number
is noted. GET / tells the count and clears nothing; GET /arrivals gives all and forgets them. No
HTTP library: it has to be cheaper than what it measures.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from typing import cast

NUMBER = re.compile(rb"/(\d+)\"")
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


class Book:
    def __init__(self) -> None:
        self.requests = 0
        self.arrivals: list[tuple[int, int]] = []  # the event's number, ns

    def note(self, body: bytes) -> None:
        now_ns = time.monotonic_ns()
        self.requests += 1
        self.arrivals += [(int(number), now_ns) for number in NUMBER.findall(body)]

    def tell(self, everything: bool) -> bytes:
        told = {"requests": self.requests, "events": len(self.arrivals)}
        if not everything:
            return json.dumps(told).encode()
        text = json.dumps({**told, "arrivals": self.arrivals}).encode()
        self.requests, self.arrivals = 0, []
        return text


class Sink(asyncio.Protocol):
    def __init__(self, book: Book, answer_after_s: float) -> None:
        self._book = book
        self._answer_after_s = answer_after_s
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while True:
            end = self._unread.find(b"\r\n\r\n")
            if end < 0:
                return
            length = LENGTH.search(self._unread, 0, end)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._unread) < whole:
                return
            request, self._unread = self._unread[:whole], self._unread[whole:]
            if request.startswith(b"GET"):
                self._answer(self._book.tell(request.startswith(b"GET /arrivals")))
                continue
            self._book.note(request[end + 4 :])
            if self._answer_after_s:
                loop = asyncio.get_running_loop()
                loop.call_later(self._answer_after_s, self._answer, b"")
            else:
                self._answer(b"")

    def _answer(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


async def main() -> None:
    book = Book()
    after_s = int(sys.argv[1]) / 1000 if len(sys.argv) > 1 else 0.0
    server = await asyncio.get_running_loop().create_server(
        lambda: Sink(book, after_s), "127.0.0.1", 0
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

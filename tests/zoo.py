"""A subscriber on loopback that misbehaves as it is told, by the byte: each path has its animal."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

LONGEST_S = 60.0


@dataclass(frozen=True)
class Request:
    head: bytes
    body: bytes
    at_s: float

    @property
    def path(self) -> str:
        return self.head.split(b" ", 2)[1].decode()

    @property
    def headers(self) -> list[tuple[str, str]]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return [(name, value.strip()) for name, _, value in (each.partition(":") for each in lines)]

    def header(self, name: str) -> str:
        (value,) = [each for key, each in self.headers if key.lower() == name.lower()]
        return value


class Visit:
    """One connection, as its animal sees it."""

    def __init__(self, zoo: Zoo, connection: socket.socket) -> None:
        self.zoo = zoo
        self.connection = connection
        self.request: Request | None = None  # the latest
        self.sent_bytes = 0

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)
        self.sent_bytes += len(data)

    def drip(self, data: bytes, every_s: float = 0.02) -> None:
        for number in range(len(data)):
            self.send(data[number : number + 1])
            if self.zoo.closing.wait(every_s):
                return

    def hang(self) -> None:
        self.zoo.closing.wait(LONGEST_S)

    def hang_up(self) -> None:
        shut(self.connection)

    def reset(self) -> None:
        """RST, not FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


Animal = Callable[[Visit], None]


def answering(head: str, body: bytes = b"", *, close: bool = False) -> Animal:
    """`head` is the status line and headers as they are, without the last line breaks."""

    def answer(visit: Visit) -> None:
        visit.send(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
        if close:
            visit.hang_up()

    return answer


OK = answering("HTTP/1.1 200 OK\nContent-Length: 2", b"ok")


class Zoo:
    """`greeting` has the connection before anything is read from it."""

    def __init__(
        self, greeting: Animal | None = None, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._greeting = greeting
        self._tls = tls
        self._animals: dict[str, Animal] = {}
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self.closing = threading.Event()
        self.requests: list[Request] = []
        self.visits: list[Visit] = []

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}{path}"

    def keep(self, animal: Animal, path: str = "/") -> str:
        self._animals[path] = animal
        return self.url(path)

    def __enter__(self) -> Zoo:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.closing.set()
        shut(self._listener)
        self._threads[0].join(10)  # first, because it adds to the lists below
        for each in self._connections:
            shut(each)
        for thread in self._threads[1:]:
            thread.join(10)
        assert not any(thread.is_alive() for thread in self._threads)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed, or there was no free file for a moment
                if self.closing.wait(0.01):
                    return
                continue
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
                self._connections.append(connection)
            visit = Visit(self, connection)
            self.visits.append(visit)
            if self._greeting:
                self._greeting(visit)
            while request := read_request(connection):
                self.requests.append(request)
                visit.request = request
                self._animals[request.path](visit)
        except OSError:  # the visitor has gone, or the animal has
            pass
        finally:
            shut(connection)


def read_request(connection: socket.socket) -> Request | None:
    received = b""
    while b"\r\n\r\n" not in received:
        data = connection.recv(1 << 16)
        if not data:
            return None
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(Request(head, b"", 0).header("content-length"))
    while len(body) < length:
        body += connection.recv(1 << 16)
    return Request(head, body, time.monotonic())


def shut(each: socket.socket) -> None:
    # shutdown, because close() alone leaves a thread in accept() or recv() waiting.
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    each.close()

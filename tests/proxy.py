"""A TCP proxy before Redis that sees every command, and can lose a reply."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self

import hiredis


class Proxy:
    """An exchange is what a client sends before it reads: one command, or a pipeline."""

    def __init__(self, redis_port: int) -> None:
        self._redis_port = redis_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self.exchanges: list[list[str]] = []
        self._lose_at: int | None = None
        self.is_cut = False  # it listens, and whoever comes is shown the door

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._listener.getsockname()[1]}/0"

    def lose_reply(self, number: int) -> None:
        """Redis runs the exchange of that number from now, 0 for the next; nobody is told."""
        self.exchanges.clear()
        self._lose_at = number

    def watch(self) -> None:
        self.exchanges.clear()
        self._lose_at = None

    @property
    def has_lost(self) -> bool:
        return self._lose_at is not None and len(self.exchanges) > self._lose_at

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        # shutdown, because close() alone leaves a thread in accept() or recv() waiting.
        for each in [self._listener, *self._sockets]:
            shut(each)
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                upstream = socket.create_connection(("127.0.0.1", self._redis_port))
            except OSError:  # Redis is away
                shut(client)
                continue
            self._sockets += [client, upstream]
            thread = threading.Thread(target=self._serve, args=(client, upstream))
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket, upstream: socket.socket) -> None:
        try:
            while self._pass_on(client, upstream):
                pass
        except OSError:
            pass
        finally:
            shut(client)
            shut(upstream)

    def _pass_on(self, client: socket.socket, upstream: socket.socket) -> bool:
        commands, request = read(client, 1)
        if not commands or self.is_cut:
            return False
        number = len(self.exchanges)
        self.exchanges.append([command[0].decode().upper() for command in commands])
        upstream.sendall(request)
        replies, answer = read(upstream, len(commands))
        if not replies or number == self._lose_at:
            return False
        client.sendall(answer)
        return True


def read(source: socket.socket, least: int) -> tuple[list[list[bytes]], bytes]:
    """Whole messages, at least so many, and their bytes; none when the other side has gone."""
    parser = hiredis.Reader()
    messages: list[list[bytes]] = []
    received = b""
    while len(messages) < least or parser.has_data():
        data = source.recv(1 << 16)
        if not data:
            return [], b""
        received += data
        parser.feed(data)
        while (message := parser.gets()) is not False:
            messages.append(message)
    return messages, received


def shut(each: socket.socket) -> None:
    try:
        each.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    each.close()

"""A subscriber: a real HTTP server on loopback that answers as told and remembers every request."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Only what hangs ever takes so long.
PATIENCE_S = 30


@dataclass(frozen=True)
class Answer:
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str = ""
    # Answered when this is set: a test holds a delivery in mid-air with it.
    gate: threading.Event | None = None


@dataclass(frozen=True)
class Delivery:
    path: str
    headers: dict[str, str]
    events: list[dict[str, Any]]
    arrived_s: float

    @property
    def bid(self) -> str:
        return self.headers["webhook-id"]

    @property
    def attempt(self) -> int:
        return int(self.headers["routemaster-attempt"])

    @property
    def lane(self) -> str:
        return self.headers["routemaster-lane"]

    @property
    def sequence(self) -> tuple[int, int]:
        first, last = self.headers["routemaster-sequence"].split("-")
        return int(first), int(last)

    @property
    def user(self) -> str:
        return base64.b64decode(self.headers["authorization"].removeprefix("Basic ")).decode()

    @property
    def times(self) -> list[int]:
        return [event["t"] for event in self.events]


def in_turn(*answers: Answer) -> Callable[[Delivery], Answer]:
    """One after the other, and 200 when they are used up."""
    left = list(answers)
    return lambda delivery: left.pop(0) if left else Answer()


class Receiver:
    """`script` gives the answer to each request; replace it to change the subscriber's mind."""

    def __init__(self) -> None:
        self.script = in_turn()
        self.deliveries: list[Delivery] = []
        self._changed = threading.Condition()
        self._gates: list[threading.Event] = []
        self._server = Server(("127.0.0.1", 0), handler(self))
        # The short turn is how soon it can end.
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/callback"

    @property
    def times(self) -> list[int]:
        """Every event's timestamp, in the order of arrival."""
        return [t for delivery in list(self.deliveries) for t in delivery.times]

    def gate(self) -> threading.Event:
        """Opened with the receiver's end at the latest."""
        self._gates.append(threading.Event())
        return self._gates[-1]

    def wait_for(self, is_so: Callable[[], Any]) -> None:
        with self._changed:
            assert self._changed.wait_for(is_so, PATIENCE_S), self.summary()

    def wait_for_deliveries(self, count: int) -> list[Delivery]:
        self.wait_for(lambda: len(self.deliveries) >= count)
        return list(self.deliveries)

    def wait_for_events(self, count: int) -> list[int]:
        self.wait_for(lambda: len(self.times) >= count)
        return self.times

    def summary(self) -> str:
        rows = [f"{d.lane} {d.sequence} attempt {d.attempt} {d.bid}" for d in self.deliveries]
        return "\n".join([f"{len(rows)} requests:", *rows[-50:]])

    def close(self) -> None:
        for gate in self._gates:
            gate.set()
        self._server.shutdown()
        self._thread.join(PATIENCE_S)
        self._server.hang_up()
        self._server.server_close()

    def note(self, delivery: Delivery) -> Answer:
        with self._changed:
            self.deliveries.append(delivery)
            answer = self.script(delivery)
            self._changed.notify_all()
        return answer


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    # server_close() then joins the threads, which hang_up() has ended.
    daemon_threads = False

    def __init__(self, address: tuple[str, int], kind: type[BaseHTTPRequestHandler]) -> None:
        self._open: list[socket.socket] = []
        super().__init__(address, kind)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        self._open.append(connection)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a worker that was killed, or whose patience ended: the tests know

    def hang_up(self) -> None:
        for connection in self._open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # ended already


def handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            arrived_s = time.monotonic()
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = receiver.note(Delivery(self.path, headers, json.loads(body), arrived_s))
            if answer.gate:
                answer.gate.wait(PATIENCE_S)
            self.send_response(answer.status)
            content = answer.body.encode()
            for name, value in {"Content-Length": str(len(content)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler

"""A proxy before the real bus: passes requests on, or loses answers, or answers in its place."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Say:
    """Answered without asking the bus."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


PASS, LOSE, HANG_UP = "pass", "lose", "hang up"
Act = str | Say


class Gateway:
    """`script` says what is done with each request; by default all are passed on."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.seen: list[Seen] = []
        self.script: Callable[[Seen], Act] = lambda seen: PASS
        # Nothing is passed on, or answered, while it is closed.
        self.gate = threading.Event()
        self.gate.set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def in_turn(self, *acts: Act) -> None:
        """One after the other, then everything passes."""
        left = list(acts)
        self.script = lambda seen: left.pop(0) if left else PASS

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()


def handler(gateway: Gateway) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            seen = Seen(self.command, self.path, dict(self.headers.items()), body)
            gateway.seen.append(seen)
            act = gateway.script(seen)
            gateway.gate.wait(30)
            if isinstance(act, Say):
                self.say(act)
            elif act == HANG_UP:
                self.close_connection = True
            else:
                said = ask(gateway.port, seen)
                if act == PASS:
                    self.say(said)
                else:
                    self.close_connection = True

        do_GET = do_POST = do_DELETE = answer

        def say(self, answer: Say) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def ask(port: int, seen: Seen) -> Say:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(seen.method, seen.path, seen.body or None, seen.headers)
        answer = connection.getresponse()
        hop = {"connection", "content-length", "transfer-encoding", "keep-alive"}
        kept = {k: v for k, v in answer.getheaders() if k.lower() not in hop}
        return Say(answer.status, kept, answer.read())
    finally:
        connection.close()

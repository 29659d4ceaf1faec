"""The load driver: one request, prebuilt, over keep-alive connections, in a process of its own.

`python -m bench.load` reads a line of JSON (the Job) and the bytes of the request from stdin, and
prints a line of JSON (the Result). Only the standard library, and no HTTP parser: it has to be
cheaper than what it measures. Anything but a 204 ends it with an error.
"""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
ACCEPTED = b"HTTP/1.1 204 "
END = b"\r\n\r\n"
ANSWERED_WITHIN_S = 20.0


class Void(Exception):
    """The figures of this run are worth nothing: events were lost, or doubled, or refused."""


@dataclass(frozen=True)
class Job:
    port: int
    connections: int
    warm_s: float
    seconds: float


@dataclass(frozen=True)
class Result:
    accepted: int  # in all, to be compared with what the bus counted
    per_s: float  # the rest is without the warming up
    p50_ms: float
    p99_ms: float


class Connection:
    __slots__ = ("answer", "sent_at_s", "sock", "unsent")

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), ANSWERED_WITHIN_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.unsent = memoryview(b"")
        self.answer = b""
        self.sent_at_s = 0.0

    def begin(self, request: memoryview, now_s: float) -> bool:
        self.sent_at_s, self.answer, self.unsent = now_s, b"", request
        return self.send()

    def send(self) -> bool:
        """Whether all of the request is on its way."""
        try:
            self.unsent = self.unsent[self.sock.send(self.unsent) :]
        except BlockingIOError:
            pass
        return not self.unsent

    def is_answered(self) -> bool:
        data = self.sock.recv(65536)
        self.answer = self.answer + data if self.answer else data
        if self.answer.endswith(END) and self.answer.startswith(ACCEPTED):
            return True
        if not data or (END in self.answer and not self.answer.startswith(ACCEPTED)):
            raise ConnectionError(f"not accepted: {self.answer[:500]!r}")
        return False


class Driver:
    def __init__(self, job: Job, request: bytes) -> None:
        self._job = job
        self._request = memoryview(request)
        self._selector = selectors.DefaultSelector()
        self._laps: list[tuple[float, float]] = []  # answered at, took
        self._warm_s = 0.0
        self._end_s = 0.0

    def run(self) -> Result:
        self._warm_s = time.perf_counter() + self._job.warm_s
        self._end_s = self._warm_s + self._job.seconds
        for _ in range(self._job.connections):
            self._begin(Connection(self._job.port), is_new=True)
        waiting = self._job.connections
        while waiting:
            ready = self._selector.select(ANSWERED_WITHIN_S)
            if not ready:
                raise TimeoutError("no answer")
            for key, mask in ready:
                connection: Connection = key.data
                if mask & selectors.EVENT_WRITE:
                    self._go_on(connection)
                elif connection.is_answered():
                    if self._goes_on(connection):
                        self._begin(connection)
                    else:
                        self._selector.unregister(connection.sock)
                        connection.sock.close()
                        waiting -= 1
        return self._result()

    def _goes_on(self, connection: Connection) -> bool:
        """Notes an answer. A window that a busy machine left empty ends with its first answer."""
        now_s = time.perf_counter()
        if self._end_s < now_s and (not self._laps or self._laps[-1][0] < self._warm_s):
            self._end_s = now_s
        self._laps.append((now_s, now_s - connection.sent_at_s))
        return now_s < self._end_s

    def _begin(self, connection: Connection, is_new: bool = False) -> None:
        is_sent = connection.begin(self._request, time.perf_counter())
        if is_new:
            self._selector.register(connection.sock, selectors.EVENT_READ, connection)
        if not is_sent:
            both = selectors.EVENT_READ | selectors.EVENT_WRITE
            self._selector.modify(connection.sock, both, connection)

    def _go_on(self, connection: Connection) -> None:
        if connection.send():
            self._selector.modify(connection.sock, selectors.EVENT_READ, connection)

    def _result(self) -> Result:
        took = sorted(lap for at, lap in self._laps if self._warm_s <= at <= self._end_s)
        return Result(
            accepted=len(self._laps),
            per_s=len(took) / (self._end_s - self._warm_s),
            p50_ms=took[len(took) // 2] * 1000 if took else 0.0,
            p99_ms=took[len(took) * 99 // 100] * 1000 if took else 0.0,
        )


def drive(job: Job, request: bytes) -> Result:
    """Runs a Driver in another process."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.load"],
        input=json.dumps(asdict(job)).encode() + b"\n" + request,
        capture_output=True,
        cwd=ROOT,
        timeout=job.warm_s + job.seconds + 2 * ANSWERED_WITHIN_S,
    )
    if done.returncode:
        raise Void(f"the load driver failed: {done.stderr.decode(errors='replace')}")
    return Result(**json.loads(done.stdout))


def main() -> None:
    job = Job(**json.loads(sys.stdin.buffer.readline()))
    try:
        result = Driver(job, sys.stdin.buffer.read()).run()
    except OSError as error:
        fail(error)
    print(json.dumps(asdict(result)))


def fail(error: OSError) -> NoReturn:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()

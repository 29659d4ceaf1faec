"""Measures delivering, beside a bare client in the same run: `python -m bench.delivery [--quick]`.

A run in which an event was lost, or came twice, is VOID: exit status 3.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench import poster
from bench.arrivals import SinkProcess, a_sink, a_worker, claim, follow
from bench.load import Void
from bench.report import Goal, at_least, print_goals
from bench.rig import PRODUCT, PUBLISHER, Rig, basic, spelled
from bench.tables import percent, table
from routemaster.redis_server import Server, find_server
from tests.busses import publish

VOID = 3
OF_BARE, MOST_ABOVE_MS, MOST_IDLE = 0.70, 10.0, 0.01
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Size:
    # subscribers, events in a batch, events in all, ms a subscriber takes to answer
    backlogs: tuple[tuple[int, int, int, int], ...]
    rates: tuple[int, ...]
    latency_s: float
    idle_s: float


FULL = Size(((20, 100, 200_000, 0), (20, 10, 40_000, 0), (20, 1, 10_000, 0), (1, 100, 100_000, 0),
             (20, 100, 200_000, 2), (20, 1, 5_000, 2), (20, 100, 100_000, 10)),
            (50, 200, 1000), 5.0, 10.0)  # fmt: skip
QUICK = Size(((20, 100, 50_000, 0), (20, 1, 4_000, 0), (20, 100, 100_000, 2)), (50, 200), 2.0, 3.0)
TINY = Size(((2, 10, 100, 0), (2, 10, 100, 2)), (50,), 0.2, 0.2)


@dataclass(frozen=True)
class Drained:
    subscribers: int
    max_events: int
    answer_ms: int
    batches_per_s: float
    events_per_s: float
    bare_batches_per_s: float

    @property
    def of_bare(self) -> float:
        return self.batches_per_s / self.bare_batches_per_s


@dataclass(frozen=True)
class Latency:
    rate: int
    timeout_ms: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.delivery", description="Measures delivering.")
    parser.add_argument("--quick", action="store_true", help="half a minute instead of minutes")
    parser.add_argument("--tiny", action="store_true", help="for the tests; figures mean nothing")
    asked = parser.parse_args(words)
    size = TINY if asked.tiny else QUICK if asked.quick else FULL
    try:
        measure(find_server(), size)
    except Void as reason:
        print(f"\nVOID: {reason}")
        return VOID
    return 0


def measure(server: Server, size: Size) -> None:
    drains = [drain(server, *backlog) for backlog in size.backlogs]
    print(of_drains(drains), flush=True)
    latencies = [
        latency(server, rate, timeout_ms, size.latency_s)
        for timeout_ms in (0, 50)
        for rate in size.rates
    ]
    print(of_latencies(latencies), flush=True)
    idle = idle_share(server, size.idle_s)
    row_bytes, batch_bytes = history_bytes(server)
    print(f"\nAn idle worker uses {idle:.2%} of a core. A success takes {row_bytes:.0f} bytes of "
          f"history, the batch it describes {batch_bytes:,} (100 events).")  # fmt: skip
    above = max(row.p50_ms - row.timeout_ms for row in latencies)
    print_goals([
        at_least("delivering keeps up with the bare client",
                 "batches/s of neighbouring runs, subscribers that answer at once, the lowest row",
                 OF_BARE, worst(drains, False)),
        at_least("draining is limited by the subscribers",
                 "the same, subscribers that take some ms to answer",
                 OF_BARE, worst(drains, True)),
        Goal("an event arrives soon", "median from its scheduled time, less the batch's timeout",
             f"<= {MOST_ABOVE_MS:.0f} ms", f"{above:.1f} ms", above <= MOST_ABOVE_MS),
        Goal("an idle worker needs little", "share of a core", f"<= {MOST_IDLE:.0%}",
             f"{idle:.2%}", idle <= MOST_IDLE),
    ])  # fmt: skip


def worst(drains: list[Drained], slow: bool) -> float:
    return min(row.of_bare for row in drains if row.subscribers > 1 and bool(row.answer_ms) is slow)


def drain(
    server: Server, subscribers: int, max_events: int, events: int, answer_ms: int
) -> Drained:
    """A backlog, and a worker that is started when all of it is there."""
    with Rig(server) as rig, a_sink(answer_ms) as sink:
        topics = [f"drain_{spelled(number)}" for number in range(subscribers)]
        for topic in topics:
            follow(rig, topic, topic, sink, max=max_events)
            claim(rig, topic)
        each = events // subscribers
        for place, topic in enumerate(topics):
            for first in range(0, each, 1000):
                numbers = range(first, min(first + 1000, each))
                send(rig, topic, (place * each + number for number in numbers))
        with a_worker(rig):
            arrived = sorted(sink.take(each * subscribers).values())
        took_s = (arrived[-1] - arrived[0]) / 1e9
        batches = -(-each // max_events) * subscribers
        bodies = [body(range(n, n + max_events)) for n in range(0, each * subscribers, max_events)]
        bare_s = poster.post_all(sink.url, bodies, rig.bus.settings.worker_threads)
        sink.take(each * subscribers)
    return Drained(subscribers, max_events, answer_ms, batches / took_s,
                   each * subscribers / took_s, len(bodies) / bare_s)  # fmt: skip


def latency(server: Server, rate: int, timeout_ms: int, seconds: float) -> Latency:
    """Open loop: an event is late from the moment at which it should have been published."""
    with ExitStack() as stack:
        rig = stack.enter_context(Rig(server))
        sink = stack.enter_context(a_sink())
        follow(rig, "mailer", "orders", sink, timeout=timeout_ms)
        claim(rig, "orders")
        port = stack.enter_context(rig.web(PRODUCT, 1))
        stack.enter_context(a_worker(rig))
        warm(rig, sink)
        count = max(1, round(rate * seconds))
        planned = publish_on_time(port, count, rate)
        arrived = sink.take(count)
    late = sorted((arrived[number] - planned[number]) / 1e6 for number in range(count))
    at = [late[min(count - 1, round(count * part))] for part in (0.5, 0.95, 0.99)]
    return Latency(rate, timeout_ms, *at)


def warm(rig: Rig, sink: SinkProcess) -> None:
    """The worker is up and has a connection when the first event has come through."""
    send(rig, "orders", [0])
    sink.take(1)


def publish_on_time(port: int, count: int, rate: int) -> list[int]:
    """Publishes each event at its time, over as many connections as it takes. Returns the times."""
    began_ns = time.monotonic_ns() + 50_000_000
    planned = [began_ns + number * 1_000_000_000 // rate for number in range(count)]
    selector = selectors.DefaultSelector()
    idle: list[socket.socket] = []
    unanswered = 0
    for number, due_ns in enumerate(planned):
        while (left_ns := due_ns - time.monotonic_ns()) > 0:
            unanswered -= collect(selector, idle, left_ns / 1e9)
        connection = idle.pop() if idle else connect(port, selector)
        connection.sendall(request(body([number])))
        unanswered += 1
    while unanswered:
        unanswered -= collect(selector, idle, 20.0) or no_answer()
    for key in list(selector.get_map().values()):
        selector.unregister(key.fileobj)
        key.data.close()
    selector.close()
    return planned


def collect(selector: selectors.BaseSelector, idle: list[socket.socket], wait_s: float) -> int:
    ready = selector.select(wait_s)
    for key, _ in ready:
        answer = key.data.recv(65536)
        if not answer.startswith(b"HTTP/1.1 204 "):
            raise Void(f"not accepted: {answer[:200]!r}")
        idle.append(key.data)
    return len(ready)


def no_answer() -> int:
    raise Void("no answer to a publish")


def connect(port: int, selector: selectors.BaseSelector) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    selector.register(connection, selectors.EVENT_READ, connection)
    return connection


def request(events: bytes) -> bytes:
    lines = [
        "POST /topics/orders HTTP/1.1", "Host: bus", f"Authorization: {basic()}",
        "Content-Type: application/json", f"Content-Length: {len(events)}", "", "",
    ]  # fmt: skip
    return "\r\n".join(lines).encode() + events


def idle_share(server: Server, seconds: float) -> float:
    with Rig(server) as rig, a_sink() as sink:
        follow(rig, "mailer", "orders", sink)
        claim(rig, "orders")
        with a_worker(rig) as worker:
            warm(rig, sink)
            before = cpu_s(worker.pid)
            time.sleep(seconds)
            return (cpu_s(worker.pid) - before) / seconds


def cpu_s(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def history_bytes(server: Server) -> tuple[float, int]:
    """What a success leaves in the history, and what its batch had taken."""
    with Rig(server) as rig, a_sink() as sink:
        follow(rig, "mailer", "orders", sink)
        claim(rig, "orders")
        send(rig, "orders", range(10_000))
        (held,) = rig.bus.link.call("LRANGE", f"{rig.bus.keys.lane_batches_prefix}mailer|0", 0, 0)
        key = rig.bus.keys.batch_prefix + held.decode()
        batch = int(rig.bus.link.call("MEMORY", "USAGE", key, "SAMPLES", 0))
        with a_worker(rig):
            sink.take(10_000)
        key = rig.bus.keys.operations("mailer")
        rows = int(rig.bus.link.call("LLEN", key))
        return int(rig.bus.link.call("MEMORY", "USAGE", key, "SAMPLES", 0)) / rows, batch


def send(rig: Rig, topic: str, numbers: Iterable[int]) -> None:
    publish(rig.bus, PUBLISHER, topic, body(numbers))


def body(numbers: Iterable[int]) -> bytes:
    return json.dumps(
        [{"type": "update", "url": f"https://shop.example/orders/{n}", "timestamp": 1763460000000}
         for n in numbers], separators=(",", ":")
    ).encode()  # fmt: skip


def of_drains(rows: list[Drained]) -> str:
    return table(
        "A backlog drained by one worker, beside a bare client with as many connections",
        "subscribers events/batch answer_ms batches/s events/s bare_batches/s of_bare".split(),
        [(r.subscribers, r.max_events, r.answer_ms, r.batches_per_s, r.events_per_s,
          r.bare_batches_per_s, percent(r.of_bare)) for r in rows],
    )  # fmt: skip


def of_latencies(rows: list[Latency]) -> str:
    return table(
        "From an event's scheduled publication to its arrival, open loop",
        "events/s timeout_ms p50_ms p95_ms p99_ms".split(),
        [(r.rate, r.timeout_ms, r.p50_ms, r.p95_ms, r.p99_ms) for r in rows],
    )


if __name__ == "__main__":
    sys.exit(main())

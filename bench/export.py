"""Measures what the export costs the bus, with and without it in the same run, and how fast rows
are drained: `python -m bench.export [--quick]`.

A run in which a row is missing is VOID: exit status 3.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.arrivals import a_sink, a_worker, claim, follow
from bench.calls import Call
from bench.delivery import cpu_s, send
from bench.load import Void
from bench.report import Goal, print_goals
from bench.rig import Rig, spelled
from bench.tables import percent, table
from routemaster.domain.attempt import Attempt
from routemaster.domain.datasets import DATASETS
from routemaster.domain.subscription import Subscription
from routemaster.export.exporter import Exporter
from routemaster.export.files import listing
from routemaster.export.folder import Folder
from routemaster.export.manifest import rows_of
from routemaster.redis_server import Server, find_server
from routemaster.store.events import uid
from routemaster.store.jobs import JobQueue, Limits
from routemaster.subscribe import subscribe

VOID = 3
ACKS = 40
MOST_FIELDS = 9  # ARGV[10] of publish.lua
MOST_COST, MOST_OF_PUBLISH = 0.02, 0.05


@dataclass(frozen=True)
class Size:
    publishes: tuple[tuple[int, int], ...]  # events, subscribers
    laps: int
    calls: int
    backlogs: tuple[tuple[int, int], ...]  # events in a batch, batches
    rows: int


FULL = Size(((1, 1), (1, 10)), 40, 300, ((1, 10_000), (100, 2000)), 400_000)
QUICK = Size(((1, 1), (1, 10)), 20, 200, ((1, 4000), (100, 600)), 100_000)
TINY = Size(((1, 1),), 2, 2, ((1, 40),), 200)


@dataclass(frozen=True)
class Compared:
    what: str
    without: float
    with_: float

    @property
    def ratio(self) -> float:
        return self.with_ / self.without


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.export", description="Measures the export.")
    parser.add_argument("--quick", action="store_true", help="a minute instead of minutes")
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
    publishes = [publishing(server, size, *shape) for shape in size.publishes]
    print(of("Redis' time for one publish, us, without and with the export", publishes), flush=True)
    settled = settling(server, size)
    print(of("Settling one delivery, us", settled), flush=True)
    row_us, turn_ms, rate = draining(server, size.rows)
    print(f"\nOne exporter drains {rate:,.0f} attempts/s into Parquet, for {row_us:.1f} us of CPU "
          f"each; a turn by itself takes {turn_ms:.0f} ms of CPU, once in a minute.")  # fmt: skip
    added_us = sum(row.with_ - row.without for row in settled)
    dearest = max(row.ratio for row in publishes) - 1
    goals = [
        Goal("counting publishes is cheap", "Redis' time, the dearest row",
             f"<= +{MOST_OF_PUBLISH:.0%}", f"{dearest:+.1%}", dearest <= MOST_OF_PUBLISH)
    ]  # fmt: skip
    for max_events, batches in size.backlogs:
        whole_us = delivered(server, max_events, batches)
        cost = added_us / whole_us
        print(
            f"Batches of {max_events}: a delivery takes {whole_us:,.0f} us of worker and Redis; "
            f"the export adds {cost:.1%} to it, and {row_us / whole_us:.1%} in the exporter."
        )
        goals.append(
            Goal(f"the export costs the bus little, batches of {max_events}",
                 "CPU of worker and Redis for a delivery; the exporter may be another process",
                 f"<= {MOST_COST:.0%}", f"{cost:.1%}", cost <= MOST_COST)
        )  # fmt: skip
    print_goals(goals)


def publishing(server: Server, size: Size, events: int, subscribers: int) -> Compared:
    """By turns on one Redis, so that neither has the emptier one."""
    us: dict[bool, list[float]] = {False: [], True: []}
    with Rig(server, exports=True) as rig:
        topic = rig.topic(subscribers)
        calls = {True: Call.publishing(rig.bus, topic, events)}
        args = calls[True].args.copy()
        args[MOST_FIELDS] = 0
        calls[False] = Call(calls[True].script, calls[True].keys, args)
        calls[True].run(rig.bus.link)
        for lap in range(2 * size.laps):
            exports = bool(lap % 2)
            before = rig.script_us()
            for _ in range(size.calls):
                calls[exports].run(rig.bus.link)
            us[exports].append((rig.script_us() - before) / size.calls)
    # The fastest laps: a busy machine only adds.
    return Compared(f"{events} events to {subscribers}", min(us[False]), min(us[True]))


def settling(server: Server, size: Size) -> list[Compared]:
    """An acknowledgement with and without a row for the export: Redis' part and the worker's."""
    redis_us: dict[bool, list[float]] = {False: [], True: []}
    worker_us: dict[bool, list[float]] = {False: [], True: []}
    with Rig(server, exports=True) as rig:
        follow_nobody(rig)
        for lap in range(2 * size.laps):
            exports = bool(lap % 2)
            send(rig, "orders", range(ACKS))
            redis, worker = lap_of_acks(rig, Limits(1000, 200_000 if exports else 0))
            redis_us[exports].append(redis)
            worker_us[exports].append(worker)
    return [
        Compared("Redis", min(redis_us[False]), min(redis_us[True])),
        Compared("the worker", min(worker_us[False]), min(worker_us[True])),
    ]


def follow_nobody(rig: Rig) -> None:
    """A subscriber whose deliveries are only said to have happened."""
    wanted = {"topics": ["orders"], "callback": "https://nobody.example/", "uuid": "u", "max": 1}
    subscribe(rig.bus, "s", Subscription.parse(wanted, allow_http=False, allowed_networks=[]))
    claim(rig, "orders")


def lap_of_acks(rig: Rig, limits: Limits) -> tuple[float, float]:
    queue = JobQueue(rig.bus.link, rig.bus.keys, "main", limits)
    redis_us, worker_s = 0, 0.0
    for _ in range(ACKS):
        [lease] = queue.take("w", uid(), 10_000, 1).leases
        assert lease.batch
        at_ms = lease.batch.created_ms
        attempt = Attempt("0", lease.bid, 1, 1, 100, at_ms, at_ms, at_ms, "delivered", 200, "", "w")
        before = rig.script_us()
        began_s = time.process_time()
        call = queue.ack_call(lease.job, lease.fence, lease.bid, health=1, attempt=attempt)
        worker_s += time.process_time() - began_s
        rig.bus.link.run_call(call)
        redis_us += rig.script_us() - before
    return redis_us / ACKS, worker_s / ACKS * 1e6


def delivered(server: Server, max_events: int, batches: int) -> float:
    """CPU of worker and Redis for one batch, without the export, in us."""
    subscribers, each = 20, max_events * batches // 20
    with Rig(server) as rig, a_sink(0) as sink:
        topics = [f"drain_{spelled(number)}" for number in range(subscribers)]
        for topic in topics:
            follow(rig, topic, topic, sink, max=max_events)
            claim(rig, topic)
        with a_worker(rig) as worker:
            # What a worker needs to start is no part of a delivery.
            send(rig, topics[0], range(max_events))
            sink.take(max_events)
            before = cpu_s(worker.pid) + cpu_s(rig.redis.pid)
            for place, topic in enumerate(topics):
                for first in range(0, each, 1000):
                    begin = max_events + place * each + first
                    send(rig, topic, range(begin, begin + min(1000, each - first)))
            sink.take(each * subscribers)
            return (cpu_s(worker.pid) + cpu_s(rig.redis.pid) - before) * 1e6 / batches


def draining(server: Server, rows: int) -> tuple[float, float, float]:
    """CPU of a row in us, of an empty turn in ms, and rows/s."""
    with Rig(server, exports=True) as rig:
        exporter = Exporter(rig.bus)
        exporter.turn()
        empty_s = cpu_of(rig, exporter)
        fill(rig, rows)
        began_s = time.monotonic()
        spent_s = cpu_of(rig, exporter) - empty_s
        took_s = time.monotonic() - began_s
        if count_rows(rig, "attempts") != rows:
            raise Void("attempts are missing in the export")
    return spent_s / rows * 1e6, empty_s * 1000, rows / took_s


def cpu_of(rig: Rig, exporter: Exporter) -> float:
    before = time.process_time() + cpu_s(rig.redis.pid)
    exporter.turn()
    return time.process_time() + cpu_s(rig.redis.pid) - before


def fill(rig: Rig, rows: int) -> None:
    at_ms = 1_763_460_000_000
    for first in range(0, rows, 5000):
        packed = [
            Attempt("0", f"abcdefghijklmnopqrst{n}", 1, 100, 8000, at_ms, at_ms + n, at_ms + n,
                    "delivered", 200, "", "host.1", n).stream_row(f"subscriber-{n % 200}")
            for n in range(first, min(rows, first + 5000))
        ]  # fmt: skip
        rig.bus.link.many([("XADD", rig.bus.keys.attempts, "*", "a", row) for row in packed])


def count_rows(rig: Rig, name: str) -> int:
    """All of them: what the worker left in Redis is exported now."""
    Exporter(rig.bus).turn()
    folder = Folder.of(str(rig.export_folder))
    files = listing(folder, DATASETS[name]).files
    return sum(rows_of(folder, file) or 0 for file in files)


def of(title: str, rows: list[Compared]) -> str:
    return table(
        title, ["what", "without", "with", "ratio"],
        [(row.what, row.without, row.with_, percent(row.ratio)) for row in rows],
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())

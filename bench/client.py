"""Measures the Python client beside raw HTTP, in one run: `python -m bench.client [--quick]`.

The background publisher is held against what one would write without it: the same events through
`json.dumps` into bulks of the same size and form, posted by `requests`, one after the other. Beside
them, what the bus takes when a bare socket repeats one bulk made beforehand: there nothing at all
is encoded. All take turns on the same bus, each in a process of its own over one connection.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

import requests

from bench.calls import LINES, body, request
from bench.load import ROOT, Job, Void, drive
from bench.report import Goal, at_least, print_goals
from bench.rig import PRODUCT, PUBLISHER, Rig, basic
from bench.tables import percent, table
from routemaster.client import BackgroundPublisher, Client, Event
from routemaster.redis_server import find_servers
from tests.busses import token_of

OF_RAW, MOST_GROWTH_BYTES = 0.80, 8 << 20
PER_REQUEST = 1000
VOID = 3


@dataclass(frozen=True)
class Scale:
    rounds: int
    seconds: float
    many: int


FULL = Scale(rounds=5, seconds=3.0, many=1_000_000)
QUICK = Scale(rounds=3, seconds=1.0, many=200_000)
TINY = Scale(rounds=1, seconds=0.05, many=2_000)


def main(words: Sequence[str] | None = None) -> int:
    asked = arguments().parse_args(words)
    if asked.child:
        print(json.dumps(CHILDREN[asked.child](*asked.words)))
        return 0
    try:
        goals = measure(TINY if asked.tiny else QUICK if asked.quick else FULL)
    except Void as reason:
        print(f"\nVOID: {reason}")
        return VOID
    print_goals(goals)
    return 0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.client", description="Measures the client.")
    parser.add_argument("--quick", action="store_true", help="half a minute instead of minutes")
    parser.add_argument("--tiny", action="store_true", help="for the tests; figures mean nothing")
    parser.add_argument("--child", choices=list(CHILDREN), help=argparse.SUPPRESS)
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    return parser


def measure(scale: Scale) -> list[Goal]:
    with Rig(find_servers()[0]) as rig, rig.web(PRODUCT, 2) as port:
        topic = rig.topic(1)
        events = scale.many // 5
        rates = [
            (
                by_a_child("raw", rig, port, topic, events),
                by_a_child("background", rig, port, topic, events),
                of_a_socket(rig, port, topic, scale.seconds),
            )
            for _ in range(scale.rounds)
        ]
        print(
            table(
                "Bulks of 1,000 events over one connection, events/s",
                "round raw background of_raw raw_cpu_us background_cpu_us ready-made".split(),
                [
                    (n, raw, ours, percent(ours / raw), raw_us, ours_us, bare)
                    for n, ((raw, raw_us), (ours, ours_us), bare) in enumerate(rates, 1)
                ],
            )
        )
        few, many = (publish_many(rig, port, topic, n) for n in (scale.many // 10, scale.many))
        print(table("publish_many from a generator", ["events", "events/s", "memory_mb"],
                    [(n, rate, peak / 2**20) for n, rate, peak in (few, many)]))  # fmt: skip
    growth = many[2] - few[2]
    return [
        at_least(
            "the background publisher keeps up with raw bulks",
            "events/s of neighbouring runs, median of rounds",
            OF_RAW,
            median(ours / raw for (raw, _), (ours, _), _ in rates),
        ),
        Goal(
            "publish_many needs the same memory for ten times as many",
            "highest resident memory of a process of its own, the difference",
            f"<= {MOST_GROWTH_BYTES >> 20} MB",
            f"{growth / 2**20:.1f} MB",
            growth <= MOST_GROWTH_BYTES,
        ),
    ]


def of_a_socket(rig: Rig, port: int, topic: str, seconds: float) -> float:
    rig.purge()
    asked = request(basic(), f"/topics/{topic}", body(PER_REQUEST, LINES), LINES)
    with rig.audited(topic) as accepted:
        result = drive(Job(port, 1, 0.2, seconds), asked)
        accepted.append(result.accepted * PER_REQUEST)
    if not result.per_s:
        raise Void(f"{topic}: nothing was accepted in {seconds} s")
    return result.per_s * PER_REQUEST


def by_a_child(kind: str, rig: Rig, port: int, topic: str, events: int) -> tuple[float, float]:
    """Events a second, and microseconds of the client's own processor time for each."""
    rig.purge()
    with rig.audited(topic) as accepted:
        done = run(kind, port, topic, events)
        accepted.append(events)
    return events / done["seconds"], done["cpu_s"] / events * 1e6


def publish_many(rig: Rig, port: int, topic: str, events: int) -> tuple[int, float, int]:
    rig.purge()
    with rig.audited(topic) as accepted:
        done = run("many", port, topic, events)
        accepted.append(events)
    return events, events / done["seconds"], int(done["peak_bytes"])


def run(kind: str, port: int, topic: str, events: int) -> dict[str, float]:
    words = [sys.executable, "-m", "bench.client", "--child", kind]
    done = subprocess.run(
        [*words, f"http://127.0.0.1:{port}", token_of(PUBLISHER), topic, str(events)],
        cwd=ROOT, capture_output=True, env=dict(os.environ),
    )  # fmt: skip
    if done.returncode:
        raise Void(f"the client failed: {done.stderr.decode(errors='replace')}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def made(count: int) -> Iterator[Event]:
    """Like those of `bench.calls.body`."""
    data = {"colour": "red"}
    for n in range(count):
        url = f"https://publisher.example/widgets/{n % PER_REQUEST:06}"
        yield Event("update", url, t=1_700_000_000_000 + n, data=data)


class Watch:
    def __init__(self) -> None:
        self._began_s, self._cpu_s = time.perf_counter(), time.process_time()

    def read(self) -> dict[str, float]:
        now_s, cpu_s = time.perf_counter(), time.process_time()
        return {"seconds": now_s - self._began_s, "cpu_s": cpu_s - self._cpu_s}


def post_bulks(url: str, token: str, topic: str, events: str) -> dict[str, float]:
    session = requests.Session()
    session.auth = (token, "x")
    session.get(f"{url}/pulse").raise_for_status()
    headers = {"Content-Type": LINES}
    watch = Watch()
    lines: list[str] = []
    for event in made(int(events)):
        fields = {"type": event.type, "url": event.url, "timestamp": event.t, "data": event.data}
        lines.append(json.dumps(fields))
        if len(lines) == min(PER_REQUEST, int(events)):
            content = "\n".join(lines).encode()
            session.post(f"{url}/topics/{topic}", content, headers=headers).raise_for_status()
            lines = []
    return watch.read()


def publish_in_background(url: str, token: str, topic: str, events: str) -> dict[str, float]:
    client = Client(url, token)
    client.pulse()
    watch = Watch()
    with BackgroundPublisher(client, exit_timeout=60) as publisher:
        for event in made(int(events)):
            publisher.publish(topic, event)
    return watch.read()


def publish_many_of_them(url: str, token: str, topic: str, events: str) -> dict[str, float]:
    client = Client(url, token)
    client.pulse()
    watch = Watch()
    client.publish_many(topic, made(int(events)))
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {**watch.read(), "peak_bytes": peak_kib * 1024}


CHILDREN = {"raw": post_bulks, "background": publish_in_background, "many": publish_many_of_them}


if __name__ == "__main__":
    sys.exit(main())

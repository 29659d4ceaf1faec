"""Publishing over HTTP: the product and the bare handler, turn by turn, on one Redis."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from bench.calls import JSON, LINES, Call, body, request
from bench.load import Job, Result, Void, drive
from bench.rig import BARE, PRODUCT, Rig, basic
from bench.scale import Scale


@dataclass(frozen=True)
class Single:
    processes: int
    subscribers: int
    product: Result
    bare: Result
    of_bare: float


@dataclass(frozen=True)
class Bulk:
    """Events a second. `script` is the script called without HTTP, by one process."""

    processes: int
    events: int
    subscribers: int
    json: float
    lines: float
    bare: float
    script: float
    json_of_script: float
    lines_of_script: float


def singles(rig: Rig, scale: Scale, processes: int) -> list[Single]:
    job = (scale.connections, scale.warm_s, scale.seconds)
    rows = []
    with rig.web(PRODUCT, processes) as product, rig.web(BARE, processes) as bare:
        for subscribers in scale.fanouts:
            topic = rig.topic(subscribers)
            ours, theirs = [], []
            for _ in range(scale.rounds):
                path = f"/topics/{topic}"
                ours.append(run(rig, topic, Job(product, *job), path, 1, JSON))
                theirs.append(run(rig, topic, Job(bare, *job), f"/{topic}/1", 1, JSON))
            pairs = zip(ours, theirs, strict=True)
            ratio = median(a.per_s / b.per_s for a, b in pairs)
            rows.append(Single(processes, subscribers, middle(ours), middle(theirs), ratio))
    return rows


def bulks(rig: Rig, scale: Scale, processes: int) -> list[Bulk]:
    with rig.web(PRODUCT, processes) as product, rig.web(BARE, processes) as bare:
        return [
            Bulk(processes, events, subscribers, **bulk(rig, scale, product, bare, events, topic))
            for events in scale.bulks
            for subscribers, topic in ((n, rig.topic(n)) for n in scale.bulk_fanouts)
        ]


def bulk(
    rig: Rig, scale: Scale, product: int, bare: int, events: int, topic: str
) -> dict[str, float]:
    job = (scale.bulk_connections, scale.warm_s, scale.seconds)

    def over_http(port: int, path: str, kind: str) -> float:
        return run(rig, topic, Job(port, *job), path, events, kind).per_s * events

    turns: dict[str, Callable[[], float]] = {
        "json": lambda: over_http(product, f"/topics/{topic}", JSON),
        "script": lambda: script_alone(rig, scale, topic, events),
        "lines": lambda: over_http(product, f"/topics/{topic}", LINES),
        "bare": lambda: over_http(bare, f"/{topic}/{events}", JSON),
    }
    rates = [{name: turn() for name, turn in turns.items()} for _ in range(scale.rounds)]
    return {
        **{name: median(rate[name] for rate in rates) for name in turns},
        "json_of_script": median(rate["json"] / rate["script"] for rate in rates),
        "lines_of_script": median(rate["lines"] / rate["script"] for rate in rates),
    }


def run(rig: Rig, topic: str, job: Job, path: str, events: int, kind: str) -> Result:
    rig.purge()
    asked = request(basic(), path, body(events, kind), kind)
    with rig.audited(topic) as accepted:
        result = drive(job, asked)
        accepted.append(result.accepted * events)
    if not result.per_s:
        raise Void(f"{topic}: nothing was accepted in {job.seconds} s")
    return result


def script_alone(rig: Rig, scale: Scale, topic: str, events: int) -> float:
    """The script with arguments prepared beforehand: events a second of one caller."""
    rig.purge()
    call = Call.publishing(rig.bus, topic, events)
    with rig.audited(topic) as accepted:
        done, start_s = 0, time.perf_counter()
        while time.perf_counter() < start_s + scale.seconds:
            if not call.run(rig.bus.link):
                raise Void(f"{topic}: the script refused")
            done += events
        took_s = time.perf_counter() - start_s
        accepted.append(done)
    return done / took_s


def middle(results: list[Result]) -> Result:
    return Result(
        accepted=sum(result.accepted for result in results),
        per_s=median(result.per_s for result in results),
        p50_ms=median(result.p50_ms for result in results),
        p99_ms=median(result.p99_ms for result in results),
    )

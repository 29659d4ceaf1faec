"""What publishing costs without HTTP: Redis' time and memory, and how both grow."""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

from bench.calls import JSON, Call, body
from bench.rig import PUBLISHER, Rig
from bench.scale import Scale
from routemaster.identity import Credentials
from routemaster.publish import Publication
from tests.busses import token_of

MAXES = (100, 1)
# So many that what a lane costs once does not count.
MIN_QUEUED = 5_000


@dataclass(frozen=True)
class Cost:
    """Redis' share, per event and subscriber: microseconds of script, bytes once queued."""

    events: int
    subscribers: int
    max_events: int
    us_per_event: float
    us: float
    bytes: float


@dataclass(frozen=True)
class Lap:
    client_us: float
    redis_us: float


@dataclass(frozen=True)
class Flat:
    """One publish to a topic of the named bus, and how often that of the empty one fits in it."""

    bus: str
    subscribers: int
    client_us: float
    redis_us: float
    client_ratio: float
    redis_ratio: float


def shapes(scale: Scale) -> list[tuple[int, int, int]]:
    return [
        (events, subscribers, max_events)
        for max_events in MAXES
        for subscribers in scale.bulk_fanouts
        for events in (1, *scale.bulks)
    ]


def cost(rig: Rig, scale: Scale, events: int, subscribers: int, max_events: int) -> Cost:
    topic = rig.topic(subscribers, max_events)
    call = Call.publishing(rig.bus, topic, events)
    calls = scale.cost_calls if events == 1 else max(2, MIN_QUEUED // events)
    call.run(rig.bus.link)  # Redis compiles the script once, and keeps it in memory
    bytes_before, us_before = rig.used_bytes(), rig.script_us()
    with rig.audited(topic) as accepted:
        for _ in range(calls):
            accepted.append(events * call.run(rig.bus.link))
    us, held = rig.script_us() - us_before, rig.used_bytes() - bytes_before
    stored = calls * events
    return Cost(
        events, subscribers, max_events, us / stored, us / stored / subscribers,
        held / stored / subscribers,
    )  # fmt: skip


def flatness(rigs: dict[str, Rig], scale: Scale) -> list[Flat]:
    """The first bus is the empty one. All take turns, slice by slice, so that whatever else the
    machine does in the meantime hits all of them."""
    rows = []
    for subscribers in scale.bulk_fanouts:
        laps: dict[str, list[Lap]] = {name: [] for name in rigs}
        for _ in range(scale.slices):
            for name, rig in rigs.items():
                laps[name].append(lap(rig, scale, rig.topic(subscribers)))
        empty = middle(next(iter(laps.values())))
        for name, seen in laps.items():
            one = middle(seen)
            ratios = one.client_us / empty.client_us, one.redis_us / empty.redis_us
            rows.append(Flat(name, subscribers, one.client_us, one.redis_us, *ratios))
    return rows


def lap(rig: Rig, scale: Scale, topic: str) -> Lap:
    """The product's own path from credentials to answer, in this thread."""
    asked = Publication(Credentials(f"Bearer {token_of(PUBLISHER)}"), topic, body(1, JSON))
    took_s = []
    us_before = rig.script_us()
    with rig.audited(topic) as accepted:
        for _ in range(scale.slice_calls):
            start_s = time.perf_counter()
            stored = rig.bus.publisher.publish(asked)
            took_s.append(time.perf_counter() - start_s)
            accepted.append(stored.events)
    redis_us = (rig.script_us() - us_before) / scale.slice_calls
    return Lap(median(took_s) * 1e6, redis_us)


def middle(laps: list[Lap]) -> Lap:
    return Lap(median(lap.client_us for lap in laps), median(lap.redis_us for lap in laps))


def fill(rig: Rig, scale: Scale) -> None:
    """The backlog lies in the very lanes that are measured, the same for each topic."""
    for subscribers in scale.bulk_fanouts:
        topic = rig.topic(subscribers)
        events = min(1000, scale.queued)
        call = Call.publishing(rig.bus, topic, events)
        with rig.audited(topic) as accepted:
            for _ in range(scale.queued // events // subscribers):
                accepted.append(events * call.run(rig.bus.link))

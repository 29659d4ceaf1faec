"""Every number the bus can tell about itself, read from Redis: the same whoever asks."""

from __future__ import annotations

from collections.abc import Iterator

from routemaster.bus import Bus
from routemaster.metrics.memory import marks_of, measure
from routemaster.metrics.sample import Sample, counter, gauge
from routemaster.store.jobs import JobQueue

# Workers beat once a second. One that was killed never signs off.
ALIVE_MS = 10_000


def gather(bus: Bus) -> list[Sample]:
    seconds, microseconds = bus.link.call("TIME")
    now_ms = int(seconds) * 1000 + int(microseconds) // 1000
    counters = (counter(field, value) for field, value in sorted(bus.counters.read().items()))
    return [*gauges(bus, now_ms), *counters]


def gauges(bus: Bus, now_ms: int) -> list[Sample]:
    return [
        *queued(bus, now_ms),
        *jobs(bus, bus.main),
        *jobs(bus, bus.aux),
        *memory(bus),
        workers(bus, now_ms),
    ]


def queued(bus: Bus, now_ms: int) -> Iterator[Sample]:
    # Subscribers that have nothing queued too: an alarm must see the zero to end.
    names = sorted(bus.directory.fresh().routes)
    held = {holder.name: holder for holder in bus.lanes.holders()}
    oldest = bus.lanes.oldest_ms([name for name in names if name in held])
    for name in names:
        holder = held.get(name)
        age_ms = max(0, now_ms - oldest[name]) if name in oldest else 0
        yield gauge("events.queued", holder.events if holder else 0, subscriber=name)
        yield gauge("batches.queued", holder.batches if holder else 0, subscriber=name)
        yield gauge("batches.oldest_age_seconds", age_ms / 1000, subscriber=name)


def jobs(bus: Bus, queue: JobQueue) -> Iterator[Sample]:
    k, name = bus.keys, queue.name
    scheduled, instant, pending, quarantined, known = bus.link.many(
        [
            ("ZCARD", k.scheduled(name)),
            ("LLEN", k.instant(name)),
            ("ZCARD", k.pending(name)),
            ("HLEN", k.quarantine(name)),
            ("HLEN", k.index(name)),
        ]
    )
    counts = {
        "scheduled": scheduled,
        "instant": instant,
        "pending": pending,
        "quarantined": quarantined,
        # In a list for each subscriber; the rest of the index is quicker to count.
        "waiting": max(0, known - scheduled - instant - pending - quarantined),
    }
    return (gauge("jobs", count, queue=name, state=state) for state, count in counts.items())


def memory(bus: Bus) -> Iterator[Sample]:
    now = measure(bus)
    yield gauge("redis.used_bytes", now.used_bytes)
    marks = marks_of(now.max_bytes, bus.settings.redis_min_free_bytes)
    yield gauge("redis.max_bytes", now.max_bytes)
    yield gauge("redis.high_bytes", marks.high_bytes)


def workers(bus: Bus, now_ms: int) -> Sample:
    beats = bus.link.call("HVALS", bus.keys.workers)
    return gauge("workers", sum(int(beat) > now_ms - ALIVE_MS for beat in beats))

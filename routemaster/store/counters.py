"""Telemetry counters: kept by the scripts that make the change they count, so that none is lost
between the change and a flush."""

from __future__ import annotations

from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Link

ADDED = "events.added,subscriber="
GONE = ("events.delivered", "events.dropped")


class CounterStore:
    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys

    def read(self) -> dict[str, int]:
        """Every counter by `name,tag=value,...`.

        `events.added` is not stored: what was added to a subscriber's lanes is what is there plus
        what left, and publishing is spared one more field for each subscriber."""
        where = [self._keys.counters, self._keys.event_gauges]
        stored, queued = self._link.run(scripts.load().counters_read, where, [])
        counters = numbers(stored)
        added = {ADDED + name: count for name, count in numbers(queued).items()}
        for field, count in counters.items():
            name, _, tags = field.partition(",")
            if name in GONE:
                key = ADDED + tags.rpartition("subscriber=")[2]
                added[key] = added.get(key, 0) + count
        return counters | added


def numbers(flat: list[bytes]) -> dict[str, int]:
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return {name.decode(): int(value) for name, value in pairs}

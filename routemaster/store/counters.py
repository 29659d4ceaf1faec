"""Telemetry counters: kept by the scripts that make the change they count, so that none is lost
between the change and a flush."""

from __future__ import annotations

from dataclasses import dataclass

from routemaster.store import scripts
from routemaster.store.events import uid
from routemaster.store.keys import Keys
from routemaster.store.link import Link

ADDED = "events.added,subscriber="
EPOCH = b"epoch"
GONE = ("events.delivered", "events.dropped")


@dataclass(frozen=True, slots=True)
class Snapshot:
    taken_ms: int
    epoch: str
    begins: bool
    values: dict[str, int]

    @property
    def began_at_zero_ms(self) -> int | None:
        """When every counter was zero; None when nobody knows."""
        began = self.epoch[1:].partition(".")[0]
        return int(began) if self.epoch.startswith("z") and began.isdigit() else None


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
        return with_added(counters_of(stored), numbers(queued))

    def snapshot(self, ended: str = "", now_ms: int | str = "") -> Snapshot:
        """The same with their epoch, which begins with the first call that finds none. `ended` is
        an epoch whose counters were found to have gone back in time."""
        where = [self._keys.counters, self._keys.event_gauges]
        now, epoch, begins, stored, queued = self._link.run(
            scripts.load().counters_snapshot, where, [uid(), ended, now_ms]
        )
        values = with_added(counters_of(stored), numbers(queued))
        return Snapshot(int(now), epoch.decode(), bool(begins), values)


def counters_of(stored: list[bytes]) -> dict[str, int]:
    flat = [(n, v) for n, v in zip(stored[::2], stored[1::2], strict=True) if n != EPOCH]
    return numbers([word for pair in flat for word in pair])


def with_added(counters: dict[str, int], queued: dict[str, int]) -> dict[str, int]:
    added = {ADDED + name: count for name, count in queued.items()}
    for field, count in counters.items():
        name, _, tags = field.partition(",")
        if name in GONE:
            key = ADDED + tags.rpartition("subscriber=")[2]
            added[key] = added.get(key, 0) + count
    return counters | added


def numbers(flat: list[bytes]) -> dict[str, int]:
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return {name.decode(): int(value) for name, value in pairs}

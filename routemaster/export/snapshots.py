"""Counters, gauges and health as they are now.

Counters are exported as they stand, and a reader takes max - min within an epoch. So a series that
is new since the last snapshot gets a row that says it was zero then, else its first increase would
show nowhere; and an epoch ends when its counters are gone or went back in time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow.compute as pc

from routemaster.bus import Bus
from routemaster.domain.datasets import COUNTERS, GAUGES, HEALTH, Dataset
from routemaster.export.arrow import table_of
from routemaster.export.drain import date_of, last_file
from routemaster.export.files import PART, problem, read
from routemaster.export.folder import Folder
from routemaster.export.rows import DAY_MS, INT32, Row
from routemaster.export.writing import publish
from routemaster.metrics import gather
from routemaster.metrics.sample import Sample, counter
from routemaster.store.counters import ADDED, Snapshot

TAGS = ("topic", "publisher", "subscriber", "outcome", "reason")
# Derived from gauges, which an audit may set right.
UNSTEADY = ADDED.partition(",")[0]
Series = tuple[object, ...]  # its name, and the value of each tag or None


@dataclass(frozen=True, slots=True)
class Known:
    """What some file says of the counters."""

    taken_ms: int
    epoch: str
    values: dict[Series, int]


class Snapshots:
    def __init__(self, bus: Bus, folder: Folder, format: str) -> None:
        self._bus = bus
        self._folder = folder
        self._format = format
        self._known: Known | None = None

    def take(self) -> int:
        """Returns how many rows were published."""
        taken_ms, counters = self._counters()
        gauges = [gauge_row(sample, taken_ms) for sample in gather.gauges(self._bus, taken_ms)]
        health = [
            (taken_ms, name, state, min(points, 100), min(failures, INT32 - 1))
            for name, state, points, failures in self._bus.subscribers.health(
                sorted(self._bus.directory.fresh().routes)
            )
        ]
        for dataset, found in ((COUNTERS, counters), (GAUGES, gauges), (HEALTH, health)):
            self._publish(dataset, taken_ms, found)
        return len(counters) + len(gauges) + len(health)

    def _publish(self, dataset: Dataset, taken_ms: int, found: Iterable[Row]) -> None:
        days: dict[str, list[Row]] = defaultdict(list)
        for row in found:
            days[date_of(int(str(row[0])))].append(row)  # they all begin with their time
        label = f"{taken_ms:015}"
        for date, of_day in days.items():
            tables = [table_of(dataset, of_day)]
            publish(self._folder, dataset, date, PART, label, label, tables, self._format)

    def _counters(self) -> tuple[int, list[Row]]:
        known = self._known or self._from_files()
        now = self._bus.counters.snapshot()
        went_back = known and known.epoch == now.epoch and not rises(known.values, series_of(now))
        if went_back:
            now = self._bus.counters.snapshot(ended=now.epoch)
        elif known and known.epoch != now.epoch and not now.begins:
            known = self._from_files() or known  # somebody else began it
        values = series_of(now)
        zeros = [] if went_back else list(zero_rows(known, now, values))
        self._known = Known(now.taken_ms, now.epoch, values)
        rows = [(now.taken_ms, now.epoch, *series, value) for series, value in values.items()]
        return now.taken_ms, [*rows, *zeros]

    def _from_files(self) -> Known | None:
        file = last_file(self._folder, COUNTERS)
        if file is None or problem(self._folder, COUNTERS, file):
            return None
        table = read(self._folder, COUNTERS, file)
        newest = pc.max(table["taken_at"])
        rows = table.filter(pc.equal(table["taken_at"], newest)).to_pylist()
        if not rows:
            return None
        values = {(row["name"], *(row[tag] for tag in TAGS)): int(row["value"]) for row in rows}
        return Known(newest.cast("int64").as_py(), rows[0]["epoch"], values)


def zero_rows(known: Known | None, now: Snapshot, values: dict[Series, int]) -> Iterator[Row]:
    began_ms = now.began_at_zero_ms
    if known and known.epoch == now.epoch:
        at_ms, new = known.taken_ms, set(values) - set(known.values)
    elif known and now.begins:  # the counters are gone since then, or had no epoch to go with
        at_ms, new = known.taken_ms + 1, set(values)
    elif began_ms is not None and now.taken_ms - began_ms < DAY_MS:
        at_ms, new = began_ms, set(values)
    else:
        return
    for series in new:
        yield (at_ms, now.epoch, *series, 0)


def rises(before: dict[Series, int], after: dict[Series, int]) -> bool:
    return all(
        after.get(series, 0) >= value for series, value in before.items() if series[0] != UNSTEADY
    )


def series_of(now: Snapshot) -> dict[Series, int]:
    found: dict[Series, int] = {}
    for field, value in now.values.items():
        sample = counter(field, value)
        tags = dict(sample.tags)
        if tags.keys() <= set(TAGS):  # a tag without a column would make two series one
            found[(sample.name, *(tags.get(tag) for tag in TAGS))] = value
    return found


def gauge_row(sample: Sample, taken_ms: int) -> Row:
    tags = dict(sample.tags)
    labels = (tags.get(tag) for tag in ("subscriber", "queue", "state"))
    return (taken_ms, sample.name, *labels, float(sample.value))

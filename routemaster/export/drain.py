"""From Redis into files: nothing lost, nothing doubled, wherever this process dies.

1. Rows are claimed: from now on they belong to one file, named by their range.
2. The file is published, unless it is there.
3. The claim's rows leave Redis, and the claim with them.

Who finds a claim standing does 2 and 3: another exporter died there, or is just as far. Both write
the same file."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from routemaster.domain.datasets import ATTEMPTS, DROPS, PUBLISHES, Dataset
from routemaster.export import rows
from routemaster.export.arrow import table_of
from routemaster.export.files import PART, DataFile, Listing, add_partition, listing, problem
from routemaster.export.folder import Folder
from routemaster.export.rows import DAY_MS, Row
from routemaster.export.writing import publish
from routemaster.store.exports import Claim, ExportStore, Waiting

# Of one file: some megabytes here, and half a second.
MOST_ROWS = 50_000
STREAMS = {ATTEMPTS.name: (ATTEMPTS, rows.attempt), DROPS.name: (DROPS, rows.drop)}

IsOver = Callable[[], bool]
log = logging.getLogger(__name__)


class Drain:
    def __init__(self, store: ExportStore, folder: Folder, format: str) -> None:
        self._store = store
        self._folder = folder
        self._format = format

    def stream(self, name: str, is_over: IsOver, is_sure: bool) -> int:
        """Returns how many rows were published. `is_sure`: Redis has forgotten nothing since the
        last time; else the files are asked what is in them."""
        store, published = self._store, 0
        standing = store.standing(name)
        if standing:
            published += self._publish_again(name, standing)
        if not is_sure:
            self._catch_up(name)
        while not is_over():
            waiting = store.oldest(name, MOST_ROWS)
            if not waiting:
                break
            found = parsed(name, waiting)
            last = waiting[len(found) - 1]
            wanted = Claim(waiting[0].label, last.label)
            claim = store.claim(name, wanted)
            if claim == wanted:
                published += self._publish(STREAMS[name][0], claim, found, is_standing=False)
            elif claim:
                published += self._publish_again(name, claim)
        return published

    def publishes(self, is_over: IsOver, is_sure: bool) -> int:
        published = 0
        newest = None if is_sure else last_file(self._folder, PUBLISHES)
        label, upto_ms = (newest.last, end_of(newest.date)) if newest else ("", 0)
        while not is_over():
            cut = self._store.cut_publishes(label, upto_ms)
            if cut is None:
                break
            claim, fields = cut
            found = [rows.minute(field, value) for field, value in fields.items()]
            published += self._publish(PUBLISHES, claim, found, is_standing=True)
        return published

    def _publish_again(self, name: str, claim: Claim) -> int:
        """Somebody else claimed these rows, and may have published them."""
        dataset, parse = STREAMS[name]
        found = [parse(row) for row in self._store.claimed(name, claim)]
        return self._publish(dataset, claim, found, is_standing=True)

    def _publish(
        self, dataset: Dataset, claim: Claim, found: Iterable[Row | None], is_standing: bool
    ) -> int:
        days: dict[int, list[Row]] = defaultdict(list)
        column = time_column(dataset)
        unread = 0
        for row in found:
            if row is None:
                unread += 1
            else:
                days[ms_of(row, column) // DAY_MS].append(row)
        for day, of_day in sorted(days.items()):
            date = date_of(day * DAY_MS)
            if not (is_standing and self._is_published(dataset, date, claim)):
                tables = [table_of(dataset, of_day)]
                first, last = claim.first, claim.last
                publish(self._folder, dataset, date, PART, first, last, tables, self._format)
        self._store.done(dataset.name, claim)
        if unread:
            log.error("rows that cannot be read are left out of=%s rows=%s", dataset.name, unread)
        return sum(map(len, days.values()))

    def _is_published(self, dataset: Dataset, date: str, claim: Claim) -> bool:
        found = Listing()
        add_partition(self._folder, dataset, date, found, check=False)
        return any(
            file.first <= claim.first
            and claim.last <= file.last
            and not problem(self._folder, dataset, file)
            for file in found.files
        )

    def _catch_up(self, name: str) -> None:
        """Redis may have gone back in time: a power cut, a failover, a backup restored. What files
        hold must not be exported again."""
        newest = last_file(self._folder, STREAMS[name][0])
        if newest and newest.last > self._store.done_upto(name):
            behind = Claim(newest.last, newest.last)
            if self._store.claim(name, behind) == behind:
                self._store.done(name, behind)
                log.warning("redis forgot what was exported of=%s upto=%s", name, newest.last)


def parsed(name: str, waiting: list[Waiting]) -> list[Row | None]:
    """The first of these rows, which are of one day: so that a claim is one file, and the file
    alone says that all of the claim is published, should Redis forget it. At midnight rows of both
    days come mixed, for milliseconds."""
    dataset, parse = STREAMS[name]
    column, day = time_column(dataset), None
    found: list[Row | None] = []
    for one in waiting:
        row = parse(one)
        if row is not None:
            its_day = ms_of(row, column) // DAY_MS
            if day is not None and its_day != day:
                break
            day = its_day
        found.append(row)
    return found


def time_column(dataset: Dataset) -> int:
    return [column.name for column in dataset.columns].index(dataset.time)


def ms_of(row: Row, column: int) -> int:
    value = row[column]
    assert isinstance(value, int)
    return value


def last_file(folder: Folder, dataset: Dataset) -> DataFile | None:
    """That of the last range; it may be of an earlier day than others."""
    found = listing(folder, dataset, check=False)
    return max(found.files, key=lambda file: file.last, default=None)


def date_of(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d")


def end_of(date: str) -> int:
    began = datetime.fromisoformat(date).replace(tzinfo=UTC)
    return round(began.timestamp() * 1000) + DAY_MS

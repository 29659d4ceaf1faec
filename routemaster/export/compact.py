"""Many small files of a day become one, sorted, in which a subscriber's rows stand together.

The large file is published first and covers its parts by its range, so that whoever lists sees each
row once at any moment. The parts stay a while for readers that listed before, and then go. Who
dies between leaves parts that are ignored, and are removed the next time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from routemaster.domain.datasets import DATASETS, FILE_NAME, Dataset
from routemaster.export.arrow import in_order
from routemaster.export.files import (
    COVERED,
    DAY,
    PARQUET,
    BadFile,
    DataFile,
    Listing,
    add_partition,
    read_all,
)
from routemaster.export.folder import Folder
from routemaster.export.writing import LEFTOVER, publish

# A day of more is sorted in pieces: some million rows, and a gigabyte when they are unpacked.
PIECE_BYTES = 64 * 1024**2
# Readers that listed before hold on to the parts.
GRACE_S = 3600.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Compacted:
    path: str
    files: int
    rows: int


def compact(
    folder: Folder,
    datasets: Iterable[Dataset] = tuple(DATASETS.values()),
    *,
    since: str = "",
    before: str = "9999",
    grace_s: float = GRACE_S,
    is_over: Callable[[], bool] = lambda: False,
) -> list[Compacted]:
    """The days from `since` up to, but not, `before` (YYYY-MM-DD)."""
    done: list[Compacted] = []
    for dataset in datasets:
        for date in dates(folder, dataset):
            if since <= date < before and not is_over():
                done += compact_day(folder, dataset, date, grace_s)
    return done


def dates(folder: Folder, dataset: Dataset) -> list[str]:
    names = [str(info.base_name) for info in folder.entries(dataset.name)]
    return [name.removeprefix("date=") for name in names if name.startswith("date=")]


def compact_day(
    folder: Folder, dataset: Dataset, date: str, grace_s: float = GRACE_S
) -> list[Compacted]:
    found = Listing()
    add_partition(folder, dataset, date, found, check=True)
    unread = [bad for bad in found.skipped if may_hold_rows(bad)]
    for bad in unread:  # a larger file would hide it for good
        log.error("not compacted date=%s because of=%s why=%s", date, bad.path, bad.why)
    if unread:
        return []
    made = [merge(folder, dataset, date, found.files)] if is_scattered(found.files) else []
    if made and grace_s <= 0:
        remove(folder, [file.path for file in found.files])
    remove(folder, [b.path for b in found.skipped if b.is_covered and age_s(folder, b) >= grace_s])
    sweep(folder, dataset, date)
    return made


def may_hold_rows(bad: BadFile) -> bool:
    return not bad.is_covered and FILE_NAME.fullmatch(bad.path.rpartition("/")[2]) is not None


def is_scattered(files: list[DataFile]) -> bool:
    return len(files) > 1 or any((file.kind, file.format) != (DAY, PARQUET) for file in files)


def age_s(folder: Folder, bad: BadFile) -> float:
    """Since when a file is covered."""
    covering = f"{bad.path.rpartition('/')[0]}/{bad.why.removeprefix(COVERED)}"
    return seconds_since(folder.fs.get_file_info(covering).mtime)


def seconds_since(changed: object) -> float:
    """0 where a file system does not tell."""
    stamp = getattr(changed, "timestamp", None)
    return time.time() - float(stamp()) if stamp else 0.0


def merge(folder: Folder, dataset: Dataset, date: str, files: list[DataFile]) -> Compacted:
    first, last = min(file.first for file in files), max(file.last for file in files)
    counts: list[int] = []

    def tables() -> Iterator[pa.Table]:
        for some in pieces(files):
            table = in_order(dataset, read_all(folder, dataset, some))
            counts.append(table.num_rows)
            yield table

    path = publish(folder, dataset, date, DAY, first, last, tables(), PARQUET)
    return Compacted(path, len(files), sum(counts))


def pieces(files: list[DataFile]) -> Iterator[list[DataFile]]:
    waiting: list[DataFile] = []
    size = 0
    for file in files:
        waiting.append(file)
        size += file.size_bytes
        if size >= PIECE_BYTES:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


def remove(folder: Folder, paths: Iterable[str]) -> None:
    for path in paths:
        try:
            folder.fs.delete_file(path)
        except OSError as error:  # somebody else did, or the next time will
            log.warning("cannot remove file=%s why=%s", path, error)


def sweep(folder: Folder, dataset: Dataset, date: str) -> None:
    """What writers left behind that died before they could publish."""
    remove(
        folder,
        [
            info.path
            for info in folder.entries(dataset.name, f"date={date}")
            if info.base_name.startswith(LEFTOVER) and seconds_since(info.mtime) >= GRACE_S
        ],
    )

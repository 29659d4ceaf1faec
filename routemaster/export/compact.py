"""Many small files of a day become one, sorted, in which a subscriber's rows stand together.

The large file is published first and covers its parts by its range, so that a reader sees each row
once at any moment; then the parts go. Who dies between leaves parts that are ignored, and are
removed the next time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from routemaster.domain.datasets import DATASETS, Dataset
from routemaster.export.arrow import in_order
from routemaster.export.files import (
    DAY,
    PARQUET,
    DataFile,
    Listing,
    add_partition,
    is_hidden,
    read_all,
)
from routemaster.export.folder import Folder
from routemaster.export.writing import LEFTOVER, publish

# A day of more is sorted in pieces: some million rows, and a gigabyte when they are unpacked.
PIECE_BYTES = 64 * 1024**2

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Compacted:
    dataset: str
    date: str
    parts: int
    rows: int
    path: str


def compact(
    folder: Folder,
    datasets: Iterable[Dataset] = tuple(DATASETS.values()),
    *,
    before: str = "9999",
    since: str = "",
    is_over: Callable[[], bool] = lambda: False,
) -> list[Compacted]:
    """Days from `since` up to but not `before` (YYYY-MM-DD)."""
    done = []
    for dataset in datasets:
        for date in dates(folder, dataset):
            if since <= date < before and not is_over():
                made = compact_day(folder, dataset, date)
                if made:
                    done.append(made)
    return done


def dates(folder: Folder, dataset: Dataset) -> list[str]:
    names = [info.base_name for info in folder.entries(dataset.name)]
    return [name.removeprefix("date=") for name in names if name.startswith("date=")]


def compact_day(folder: Folder, dataset: Dataset, date: str) -> Compacted | None:
    found = Listing()
    add_partition(folder, dataset, date, found, check=True)
    made = None
    files = found.files
    if len(files) > 1 or (files and (files[0].kind, files[0].format) != (DAY, PARQUET)):
        made = merge(folder, dataset, date, files)
        remove(folder, [file.path for file in files if file.path != made.path])
    # What is within the range of a file that was good to read when we looked.
    remove(folder, [bad.path for bad in found.skipped if bad.is_covered])
    return made


def merge(folder: Folder, dataset: Dataset, date: str, files: list[DataFile]) -> Compacted:
    first, last = min(file.first for file in files), max(file.last for file in files)
    counted = [0]

    def tables() -> Iterator[pa.Table]:
        for piece in pieces(folder, dataset, files):
            counted[0] += piece.num_rows
            yield piece

    path = publish(folder, dataset, date, DAY, first, last, tables())
    return Compacted(dataset.name, date, len(files), counted[0], path)


def pieces(folder: Folder, dataset: Dataset, files: list[DataFile]) -> Iterator[pa.Table]:
    waiting: list[DataFile] = []
    for file in files:
        waiting.append(file)
        if sum(one.size_bytes for one in waiting) >= PIECE_BYTES:
            yield in_order(dataset, read_all(folder, dataset, waiting))
            waiting = []
    yield in_order(dataset, read_all(folder, dataset, waiting))


def remove(folder: Folder, paths: Iterable[str]) -> None:
    for path in paths:
        try:
            folder.fs.delete_file(path)
        except OSError as error:  # somebody else did, or the next compaction will
            log.warning("cannot remove file=%s why=%s", path, error)


def sweep(folder: Folder, dataset: Dataset, date: str, now_ms: int, older_ms: int) -> int:
    """Removes what writers left behind that died before they could publish."""
    old = [
        info.path
        for info in folder.entries(dataset.name, f"date={date}")
        if is_hidden(info.base_name)
        and info.base_name.startswith(LEFTOVER)
        and info.mtime is not None
        and info.mtime.timestamp() * 1000 < now_ms - older_ms
    ]
    remove(folder, old)
    return len(old)

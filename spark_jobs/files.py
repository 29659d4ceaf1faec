"""Which files of an export are to be read. What is not whole, or not ours, is named and skipped."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from pyarrow import fs as arrow_fs

from routemaster.domain.datasets import Dataset
from routemaster.export.files import DATE, DataFile, listing
from routemaster.export.folder import Folder

Say = Callable[[str], None]


class NoExport(Exception):
    pass


@dataclass(frozen=True, slots=True)
class ExportFile:
    """A file that is good to read, and its path as Spark knows it."""

    path: str
    key: str  # dataset/date=.../name, as messages show it
    data: DataFile


@dataclass(frozen=True, slots=True)
class Root:
    """The export's directory, in whatever file system its URL names."""

    url: str
    folder: Folder

    @classmethod
    def open(cls, url: str) -> Root:
        try:
            # s3a is what Spark's file system is called, s3 is Arrow's.
            folder = Folder.of(re.sub(r"^s3[an]://", "s3://", url))
            kind = folder.fs.get_file_info(folder.root).type
        except (OSError, ValueError) as error:  # pyarrow's own errors are children of these
            raise NoExport(f"--input {url}: {error}") from None
        if kind != arrow_fs.FileType.Directory:
            raise NoExport(f"--input {url}: no such directory; it is where the bus exports to")
        # A path of this machine says so, because on a cluster a bare path is the default's.
        local = folder.is_local
        return cls(f"file://{folder.root}" if local else url.rstrip("/"), folder)

    def key_of(self, path: str) -> str:
        return path.removeprefix(self.folder.root).lstrip("/")


def files_of(
    root: Root, dataset: Dataset, first_day: date | None, last_day: date | None, say: Say
) -> list[ExportFile]:
    """The files that together hold each row once, as far as names can tell: see `overlapping`."""
    since = first_day.isoformat() if first_day else ""
    until = last_day.isoformat() if last_day else "9999-12-31"
    found = listing(root.folder, dataset, since, until)
    for bad in found.skipped:
        if not bad.is_covered:
            say(f"skipped {root.key_of(bad.path)}: {bad.why}")
    keys = [(root.key_of(file.path), file) for file in found.files]
    return [ExportFile(f"{root.url}/{key}", key, file) for key, file in keys]


def days_of(root: Root, dataset: Dataset) -> list[date]:
    """Those that have a partition, whatever is in it."""
    names = [DATE.fullmatch(entry.base_name) for entry in root.folder.entries(dataset.name)]
    return [date.fromisoformat(name[1]) for name in names if name]


def day_before(root: Root, dataset: Dataset, day: date) -> date:
    """The last one before it that has a partition; itself when there is none."""
    return max((other for other in days_of(root, dataset) if other < day), default=day)


def overlapping(files: list[ExportFile]) -> set[ExportFile]:
    """Those that share a part of their range with a neighbour: a row may be in both.

    Ranges that do not meet have no row in common; that is the exporter's promise, and spares
    comparing the ids of all rows.
    """
    shared: set[ExportFile] = set()
    for one, other in pairwise(files):
        if one.data.date == other.data.date and other.data.first <= one.data.last:
            shared |= {one, other}
    return shared

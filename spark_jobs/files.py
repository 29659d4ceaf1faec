"""Which files of an export are to be read. What is not whole, or not ours, is named and skipped."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from routemaster.domain.datasets import FILE_NAME, METADATA_KEY, Dataset

Say = Callable[[str], None]
PARTITION = re.compile(r"date=(\d{4}-\d{2}-\d{2})", re.ASCII)
ARROW_TYPES = {
    "string": [pa.string(), pa.large_string()],
    "int32": [pa.int32()],
    "int64": [pa.int64()],
    "double": [pa.float64()],
    "timestamp": [pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")],
}
# Footers are small and far away: on an object store the wait for them is all that costs.
THREADS = 16


class NoExport(Exception):
    pass


@dataclass(frozen=True, slots=True)
class ExportFile:
    path: str  # as Spark is to read it
    key: str  # dataset/date=.../name, as messages show it
    day: date
    kind: str
    first: str
    last: str
    suffix: str


@dataclass(frozen=True, slots=True)
class Root:
    """The export's directory, in whatever file system its URL names."""

    url: str
    files: fs.FileSystem
    base: str

    @classmethod
    def open(cls, url: str) -> Root:
        files, base = fs.FileSystem.from_uri(as_uri(url))
        if files.get_file_info(base).type != fs.FileType.Directory:
            raise NoExport(f"{url}: no such directory; --input is where the bus exports to")
        return cls(url.rstrip("/"), files, base.rstrip("/"))

    def names(self, folder: str) -> list[str]:
        selector = fs.FileSelector(f"{self.base}/{folder}", allow_not_found=True)
        return sorted(info.base_name for info in self.files.get_file_info(selector))


def as_uri(url: str) -> str:
    if "://" not in url:
        return Path(url).resolve().as_uri()
    return re.sub(r"^s3[an]://", "s3://", url)  # Spark's name for it, and Arrow's


def files_of(
    root: Root, dataset: Dataset, first_day: date | None, last_day: date | None, say: Say
) -> list[ExportFile]:
    """The files that together hold each row once, as far as names can tell: see `overlapping`."""
    found = [
        file
        for day in days_of(root, dataset, first_day, last_day, say)
        for file in listed(root, dataset, day, say)
    ]
    with ThreadPoolExecutor(THREADS) as pool:
        wrongs = list(pool.map(lambda file: what_is_wrong(root, dataset, file), found))
    for file, wrong in zip(found, wrongs, strict=True):
        if wrong:
            say(f"skipped {file.key}: {wrong}")
    return without_covered(file for file, wrong in zip(found, wrongs, strict=True) if not wrong)


def days_of(
    root: Root, dataset: Dataset, first_day: date | None, last_day: date | None, say: Say
) -> list[date]:
    days = []
    for name in root.names(dataset.name):
        if hidden(name):
            continue
        day = day_of(name)
        if day is None:
            say(f"skipped {dataset.name}/{name}: not a partition like date=2026-03-02")
        elif (first_day is None or first_day <= day) and (last_day is None or day <= last_day):
            days.append(day)
    return days


def day_of(name: str) -> date | None:
    match = PARTITION.fullmatch(name)
    try:
        return date.fromisoformat(match[1]) if match else None
    except ValueError:
        return None


def hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def listed(root: Root, dataset: Dataset, day: date, say: Say) -> list[ExportFile]:
    folder = f"{dataset.name}/date={day}"
    files = []
    for name in root.names(folder):
        match = FILE_NAME.fullmatch(name)
        if match:
            key = f"{folder}/{name}"
            files.append(ExportFile(f"{root.url}/{key}", key, day, *match.groups()))
        elif not hidden(name):
            say(f"skipped {folder}/{name}: not a file of the export")
    return files


def what_is_wrong(root: Root, dataset: Dataset, file: ExportFile) -> str:
    """'' when the file may be read. Looks at its head or its footer, not at its rows."""
    try:
        with root.files.open_input_file(f"{root.base}/{file.key}") as opened:
            if file.suffix == "jsonl":
                return wrong_tag(tag_of_jsonl(opened.read(1000)), dataset)
            schema = pq.ParquetFile(opened).schema_arrow
    except (pa.ArrowException, OSError) as error:
        return f"not readable: {str(error).splitlines()[0]}"
    tag = (schema.metadata or {}).get(METADATA_KEY.encode(), b"").decode(errors="replace")
    return wrong_tag(tag, dataset) or wrong_columns(schema, dataset)


def tag_of_jsonl(head: bytes) -> str:
    try:
        return str(json.loads(head.partition(b"\n")[0])[METADATA_KEY])
    except (ValueError, KeyError, TypeError):
        return ""


def wrong_tag(tag: str, dataset: Dataset) -> str:
    if not tag:
        return f"does not say that it is {dataset.tag}"
    return "" if tag == dataset.tag else f"is {tag}, and these reports read {dataset.tag}"


def wrong_columns(schema: pa.Schema, dataset: Dataset) -> str:
    for column in dataset.columns:
        at = schema.get_field_index(column.name)
        if at < 0:
            return f"has no column {column.name}"
        if schema.field(at).type not in ARROW_TYPES[column.kind]:
            return f"column {column.name} is {schema.field(at).type}, not {column.kind}"
    return ""


def without_covered(files: Iterable[ExportFile]) -> list[ExportFile]:
    """Leaves out what lies within the range of another file of its day.

    Bad files must be gone by now: a broken `day` file is no reason to ignore its parts.
    """
    # Widest first among equals, then the compacted one, then Parquet.
    ordered = sorted(files, key=lambda file: (file.suffix != "parquet", file.kind != "day"))
    ordered.sort(key=lambda file: file.last, reverse=True)
    ordered.sort(key=lambda file: (file.day, file.first))
    kept: list[ExportFile] = []
    for file in ordered:
        if not (kept and kept[-1].day == file.day and file.last <= kept[-1].last):
            kept.append(file)
    return kept


def overlapping(files: list[ExportFile]) -> set[ExportFile]:
    """Those that share a part of their range with a neighbour: a row may be in both.

    Ranges that do not meet have no row in common; that is the exporter's promise, and spares
    comparing the ids of all rows.
    """
    shared: set[ExportFile] = set()
    for one, other in pairwise(files):
        if one.day == other.day and other.first <= one.last:
            shared |= {one, other}
    return shared

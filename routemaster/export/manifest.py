"""`_manifest.json` in each dataset's folder: what is there, for people and for tools that cannot
list. Nothing of ours reads it to find rows; missing or wrong it is made anew."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from pyarrow import parquet

from routemaster.domain.datasets import Dataset
from routemaster.export.files import JSONL, DataFile, header_of, listing
from routemaster.export.folder import Folder
from routemaster.export.writing import Sink, put

NAME = "_manifest.json"
HEADER_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Entry:
    path: str  # below the dataset's folder
    bytes: int
    rows: int
    first: str
    last: str


def write_manifest(folder: Folder, dataset: Dataset) -> dict[str, Any]:
    """Only files that are new to it are opened."""
    known = {(e.path, e.bytes): e for e in entries(folder, dataset)}
    found = listing(folder, dataset, check=False)
    rows = [entry(folder, dataset, file, known) for file in found.files]
    good = [row for row in rows if row]
    manifest = {
        "dataset": dataset.name,
        "version": dataset.version,
        "rows": sum(one.rows for one in good),
        "bytes": sum(one.bytes for one in good),
        "first": min((one.first for one in good), default=""),
        "last": max((one.last for one in good), default=""),
        "files": [asdict(one) for one in good],
    }

    def fill(sink: Sink) -> None:
        sink.write(json.dumps(manifest, indent=1).encode())

    put(folder, fill, dataset.name, NAME)
    return manifest


def entries(folder: Folder, dataset: Dataset) -> list[Entry]:
    """What it says now; nothing when it cannot be read."""
    try:
        with folder.fs.open_input_file(folder.path(dataset.name, NAME)) as source:
            said = json.loads(source.read())
        if (said["dataset"], said["version"]) != (dataset.name, dataset.version):
            return []
        return [Entry(**one) for one in said["files"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def entry(
    folder: Folder, dataset: Dataset, file: DataFile, known: dict[tuple[str, int], Entry]
) -> Entry | None:
    path = f"date={file.date}/{file.name}"
    had = known.get((path, file.size_bytes))
    if had:
        return had
    rows = rows_of(folder, file)
    if rows is None:
        return None
    return Entry(path, file.size_bytes, rows, file.first, file.last)


def rows_of(folder: Folder, file: DataFile) -> int | None:
    try:
        with folder.fs.open_input_file(file.path) as source:
            if file.format == JSONL:
                header = header_of(source.read(HEADER_BYTES).partition(b"\n")[0]) or {}
                return int(str(header["rows"]))
            return int(parquet.read_metadata(source).num_rows)
    except (OSError, ValueError, KeyError):  # ArrowInvalid is a ValueError
        return None

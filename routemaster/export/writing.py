"""Publishing a file: whole or not at all.

It is written under a hidden name beside its place and renamed. Object stores rename by copying,
which is as atomic. What a writer left behind that died before renaming is `leftovers`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from routemaster.domain.datasets import METADATA_KEY, Dataset
from routemaster.export.arrow import schema_of
from routemaster.export.files import JSONL, PARQUET, name_of
from routemaster.export.folder import Folder

ROW_GROUP_ROWS = 1_000_000
LEFTOVER = ".writing-"

Sink = Any  # pa.NativeFile: pyarrow carries no type hints


def publish(
    folder: Folder,
    dataset: Dataset,
    date: str,
    kind: str,
    first: str,
    last: str,
    tables: Iterable[pa.Table],
    format: str = PARQUET,
) -> str:
    """Write the file of that range; returns its path. One that is there is replaced."""
    name = name_of(kind, first, last, format)

    def fill(sink: Sink) -> None:
        WRITERS[format](sink, dataset, tables)

    return put(folder, fill, dataset.name, f"date={date}", name)


def put(folder: Folder, fill: Callable[[Sink], None], *names: str) -> str:
    path = folder.path(*names)
    parent = str(PurePosixPath(path).parent)
    # A name of its own: two writers of one file must not write into each other's.
    temporary = f"{parent}/{LEFTOVER}{uuid4().hex}"
    folder.fs.create_dir(parent, recursive=True)
    try:
        with folder.fs.open_output_stream(temporary, compression=None) as sink:
            fill(sink)
        if folder.is_local:
            sync(temporary)
        folder.fs.move(temporary, path)
    except Exception:
        discard(folder, temporary)
        raise
    if folder.is_local:
        sync(parent)
    return path


def sync(path: str) -> None:
    """To the disk: what is published is removed from Redis."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def discard(folder: Folder, path: str) -> None:
    try:
        folder.fs.delete_file(path)
    except OSError:
        pass  # it was never made, or the store is away: a leftover is hidden, and swept later


def write_parquet(sink: Sink, dataset: Dataset, tables: Iterable[pa.Table]) -> None:
    times = [column.name for column in dataset.columns if column.kind == "timestamp"]
    texts = [column.name for column in dataset.columns if column.kind == "string"]
    with parquet.ParquetWriter(
        sink,
        schema_of(dataset),
        compression="zstd",
        # Neighbouring times differ by little: a fifth less to read and decode than plain.
        use_dictionary=texts,
        column_encoding=dict.fromkeys(times, "DELTA_BINARY_PACKED"),
    ) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)


def write_jsonl(sink: Sink, dataset: Dataset, tables: Iterable[pa.Table]) -> None:
    whole = pa.concat_tables([schema_of(dataset).empty_table(), *tables])
    header = {METADATA_KEY: dataset.tag, "rows": whole.num_rows}
    sink.write(json.dumps(header).encode() + b"\n")
    for batch in in_words(dataset, whole).to_batches(max_chunksize=10_000):
        rows = batch.to_pylist()
        sink.write("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows).encode())


def in_words(dataset: Dataset, table: pa.Table) -> pa.Table:
    """Times as ISO 8601."""
    for number, column in enumerate(dataset.columns):
        if column.kind == "timestamp":
            words = pc.strftime(table.column(number), format="%Y-%m-%dT%H:%M:%SZ")
            table = table.set_column(number, column.name, words)
    return table


WRITERS = {PARQUET: write_parquet, JSONL: write_jsonl}

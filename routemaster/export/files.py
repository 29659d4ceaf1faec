"""Which files of an export are good to read, and what is wrong with the others.

Every reader begins with `listing`: it leaves out what another file already holds (see
domain/datasets.py), and names what is no file of the dataset, or is not whole. `_manifest.json` is
not looked at: a reader is right whatever it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa
from pyarrow import fs as arrow_fs
from pyarrow import json as arrow_json
from pyarrow import parquet

from routemaster.domain.datasets import FILE_NAME, METADATA_KEY, Dataset
from routemaster.export.arrow import schema_of
from routemaster.export.folder import Folder

PART, DAY = "part", "day"
PARQUET, JSONL = "parquet", "jsonl"
DATE = re.compile(r"date=(\d{4}-\d{2}-\d{2})", re.ASCII)
MAGIC = b"PAR1"
COVERED = "within the range of "
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class DataFile:
    path: str  # in the folder's file system
    date: str
    kind: str
    first: str
    last: str
    format: str
    size_bytes: int

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class BadFile:
    """`why` is for people."""

    path: str
    why: str

    @property
    def is_covered(self) -> bool:
        return self.why.startswith(COVERED)


@dataclass(slots=True)
class Listing:
    files: list[DataFile] = field(default_factory=list)
    skipped: list[BadFile] = field(default_factory=list)


def name_of(kind: str, first: str, last: str, format: str) -> str:
    return f"{kind}-{first}-{last}.{format}"


def listing(
    folder: Folder,
    dataset: Dataset,
    since: str = "",
    until: str = "9999-12-31",
    *,
    check: bool = True,
) -> Listing:
    """The files of the partitions `since` to `until` (YYYY-MM-DD, both included), by date and
    range. With `check=False` only names and sizes are looked at."""
    found = Listing()
    for info in folder.entries(dataset.name):
        date = DATE.fullmatch(info.base_name)
        if is_hidden(info.base_name):
            continue
        if date is None or info.type != arrow_fs.FileType.Directory:
            found.skipped.append(BadFile(info.path, "not a partition"))
        elif since <= date[1] <= until:
            add_partition(folder, dataset, date[1], found, check)
    return found


def add_partition(folder: Folder, dataset: Dataset, date: str, found: Listing, check: bool) -> None:
    whole: list[DataFile] = []
    for info in folder.entries(dataset.name, f"date={date}"):
        if is_hidden(info.base_name):
            continue
        match = FILE_NAME.fullmatch(info.base_name)
        if match is None or match[2] > match[3] or info.type != arrow_fs.FileType.File:
            found.skipped.append(BadFile(info.path, "not a file of an export"))
            continue
        file = DataFile(info.path, date, match[1], match[2], match[3], match[4], info.size)
        why = problem(folder, dataset, file) if check else "" if file.size_bytes else "empty"
        if why:
            found.skipped.append(BadFile(file.path, why))
        else:
            whole.append(file)
    settle(whole, found)


def settle(files: list[DataFile], found: Listing) -> None:
    """Of files that hold the same rows the largest counts."""
    # What begins first and ends last comes first; of equal ranges, what was compacted.
    files = sorted(files, key=lambda f: (f.kind != DAY, f.format != PARQUET))
    files.sort(key=lambda f: f.last, reverse=True)
    files.sort(key=lambda f: f.first)
    widest: DataFile | None = None
    for file in files:
        if widest and file.last <= widest.last:
            found.skipped.append(BadFile(file.path, COVERED + widest.name))
        else:
            found.files.append(file)
            widest = file


def is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def problem(folder: Folder, dataset: Dataset, file: DataFile) -> str:
    """Why a file cannot be read as one of the dataset; '' when it can."""
    try:
        if file.format == PARQUET:
            return parquet_problem(folder, dataset, file)
        return jsonl_problem(folder, dataset, file)
    except OSError as error:
        return f"cannot be read: {error}"


def parquet_problem(folder: Folder, dataset: Dataset, file: DataFile) -> str:
    with folder.fs.open_input_file(file.path) as source:
        head = source.read(len(MAGIC))
        source.seek(max(0, file.size_bytes - len(MAGIC)))
        if head != MAGIC:
            return "not Parquet"
        if source.read(len(MAGIC)) != MAGIC or file.size_bytes <= 2 * len(MAGIC):
            return "truncated"
    try:
        with folder.fs.open_input_file(file.path) as source:
            schema = parquet.read_schema(source)
    except (pa.ArrowException, OSError) as error:
        return f"damaged: {error}"
    tag = (schema.metadata or {}).get(METADATA_KEY.encode(), b"").decode(errors="replace")
    return tag_problem(dataset, tag) or columns_problem(dataset, schema)


def columns_problem(dataset: Dataset, schema: pa.Schema) -> str:
    found = {column.name: column.type for column in schema}
    wrong = [c.name for c in schema_of(dataset) if found.get(c.name) != c.type]
    return f"columns missing or of another type: {', '.join(wrong)}" if wrong else ""


def jsonl_problem(folder: Folder, dataset: Dataset, file: DataFile) -> str:
    lines, last = 0, b""
    with folder.fs.open_input_stream(file.path, compression=None) as source:
        head, _, rest = source.read(READ_BYTES).partition(b"\n")
        header = header_of(head)
        if header is None:
            return "not JSON Lines of an export"
        while rest:
            lines, last = lines + rest.count(b"\n"), rest[-1:]
            rest = source.read(READ_BYTES)
    rows = header.get("rows", lines)
    if last not in (b"", b"\n") or rows != lines:
        return "truncated"
    return tag_problem(dataset, str(header[METADATA_KEY]))


def header_of(line: bytes) -> dict[str, object] | None:
    try:
        header = json.loads(line)
    except ValueError:
        return None
    return header if isinstance(header, dict) and METADATA_KEY in header else None


def tag_problem(dataset: Dataset, tag: str) -> str:
    name, _, version = tag.partition("/")
    if not tag:
        return "not a file of an export"
    if name != dataset.name:
        return f"holds {name}, not {dataset.name}"
    return "" if tag == dataset.tag else f"unknown version {version} of {name}"


def read(folder: Folder, dataset: Dataset, file: DataFile) -> pa.Table:
    """The rows of a good file."""
    with folder.fs.open_input_file(file.path) as source:
        if file.format == PARQUET:
            return parquet.read_table(source).select(schema_of(dataset).names)
        while source.read(1) not in (b"\n", b""):
            pass
        return read_jsonl(dataset, source.read())


def read_jsonl(dataset: Dataset, lines: bytes) -> pa.Table:
    schema = schema_of(dataset)
    if not lines:
        return schema.empty_table()
    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    table = arrow_json.read_json(pa.BufferReader(lines), parse_options=options)
    return table.select(schema.names).cast(schema)


def read_all(folder: Folder, dataset: Dataset, files: Iterable[DataFile]) -> pa.Table:
    tables = [read(folder, dataset, file) for file in files]
    return pa.concat_tables([schema_of(dataset).empty_table(), *tables])

"""Files of an export: written whole, listed by what they are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from routemaster.domain.datasets import ATTEMPTS, COUNTERS, DATASETS, GAUGES, PUBLISHES
from routemaster.export.arrow import schema_of, table_of
from routemaster.export.files import DAY, JSONL, PARQUET, PART, listing, read_all
from routemaster.export.folder import Folder
from routemaster.export.writing import publish

DATE = "2026-11-18"
FORMATS = [PARQUET, JSONL]
ODD = ["", "é\U0001f600", 'a"b\\c\nd', "0"]


def rows_of(dataset, count):
    made = {
        "string": lambda n: ODD[n % len(ODD)],
        "int32": lambda n: n - 1,
        "int64": lambda n: 2**53 + n,
        "double": lambda n: n / 3,
        "timestamp": lambda n: 1_763_460_000_000 + 7 * n,
    }
    return [
        [
            None if column.nullable and n % 2 else made[column.kind](n + k)
            for k, column in enumerate(dataset.columns)
        ]
        for n in range(count)
    ]


def put(folder, dataset=GAUGES, first="001", last="001", kind=PART, rows=2, format=PARQUET):
    table = table_of(dataset, rows_of(dataset, rows))
    return publish(folder, dataset, DATE, kind, first, last, [table], format)


def names(files):
    return [file.name for file in files]


def reasons(found):
    return {bad.path.rpartition("/")[2]: bad.why for bad in found.skipped}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("count", [0, 1, 50])
@pytest.mark.parametrize("dataset", DATASETS.values(), ids=list(DATASETS))
def test_what_is_written_is_read_again(folder, dataset, count, format):
    put(folder, dataset, rows=count, format=format)
    found = listing(folder, dataset)
    assert found.skipped == []
    table = read_all(folder, dataset, found.files)
    assert table.schema == schema_of(dataset)
    assert table.to_pylist() == table_of(dataset, rows_of(dataset, count)).to_pylist()


def test_rows_are_sorted_as_the_contract_says(folder):
    table = table_of(PUBLISHES, rows_of(PUBLISHES, 9)[::-1])
    order = [(row["topic"], row["minute"]) for row in table.to_pylist()]
    assert order == sorted(order)


def test_a_file_says_what_it_is_and_is_packed(folder):
    path = put(folder, ATTEMPTS)
    meta = parquet.read_metadata(path)
    assert meta.metadata[b"routemaster"] == b"attempts/1"
    column = meta.row_group(0).column(0)
    assert column.compression == "ZSTD"


def test_json_lines_say_what_they_are_in_the_first_line(folder):
    path = put(folder, GAUGES, format=JSONL)
    header, first, _ = map(json.loads, Path(path).read_text().splitlines())
    assert header == {"routemaster": "gauges/1", "rows": 2}
    assert first["taken_at"] == "2025-11-18T10:00:00.007Z"


def test_nothing_but_the_file_is_left(folder, tmp_path):
    put(folder)
    assert [p.name for p in (tmp_path / "export" / "gauges" / f"date={DATE}").iterdir()] == [
        "part-001-001.parquet"
    ]


def test_a_failed_write_leaves_no_file_and_no_trace(folder, tmp_path):
    def tables():
        yield table_of(GAUGES, rows_of(GAUGES, 3))
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError):
        publish(folder, GAUGES, DATE, PART, "001", "001", tables())
    assert [p for p in (tmp_path / "export").rglob("*") if p.is_file()] == []


def test_a_file_within_the_range_of_another_is_left_out(folder):
    put(folder, first="001", last="003")
    put(folder, first="004", last="006")
    put(folder, first="001", last="006", kind=DAY)
    put(folder, first="007", last="009")
    found = listing(folder, GAUGES)
    assert names(found.files) == ["day-001-006.parquet", "part-007-009.parquet"]
    assert all(bad.is_covered for bad in found.skipped)
    assert reasons(found)["part-001-003.parquet"] == "within the range of day-001-006.parquet"
    assert listing(folder, GAUGES, check=False) == found


@pytest.mark.parametrize("width", [(1, 1), (1, 9)])
def test_of_equal_ranges_one_counts(folder, width):
    first, last = (f"00{n}" for n in width)
    for kind in (PART, DAY):
        for format in FORMATS:
            put(folder, first=first, last=last, kind=kind, format=format)
    found = listing(folder, GAUGES)
    assert names(found.files) == [f"day-{first}-{last}.parquet"]
    assert len(found.skipped) == 3


def test_ranges_that_overlap_both_count(folder):
    put(folder, first="001", last="005")
    put(folder, first="003", last="007")
    assert len(listing(folder, GAUGES).files) == 2


def test_a_broken_file_covers_nothing(folder):
    put(folder, first="001", last="003")
    path = put(folder, first="001", last="006", kind=DAY)
    os.truncate(path, 100)
    found = listing(folder, GAUGES)
    assert names(found.files) == ["part-001-003.parquet"]
    assert reasons(found) == {"day-001-006.parquet": "truncated"}


@pytest.mark.parametrize("format", FORMATS)
def test_every_truncation_is_seen(folder, format):
    path = put(folder, rows=20, format=format)
    for size in reversed(range(os.path.getsize(path))):
        os.truncate(path, size)
        found = listing(folder, GAUGES)
        assert found.files == [] and len(found.skipped) == 1, size


def plain(path, table):
    parquet.write_table(table, path)


def test_bad_and_foreign_files_are_named(folder):
    def at(number, suffix="parquet"):
        name = f"part-00{number}-00{number}.{suffix}"
        return Path(folder.path("gauges", f"date={DATE}", name))

    put(folder, first="000", last="000")
    table = table_of(GAUGES, rows_of(GAUGES, 2))
    at(1).write_text("hello, this is text and no Parquet")
    plain(at(2), table.replace_schema_metadata(None))
    plain(at(3), table.replace_schema_metadata({"routemaster": "gauges/9"}))
    plain(at(4), table_of(COUNTERS, rows_of(COUNTERS, 1)))
    plain(at(5), table.drop_columns(["value", "state"]))
    plain(at(6), table.set_column(5, "value", pa.array(["1", "2"])))
    at(7).touch()
    at(8, "jsonl").write_text("{}\n")
    at(9, "jsonl").write_text('{"routemaster": "health/1"}\n')
    for name in ("part-2-1.parquet", "notes.txt", "part-1-2.csv"):
        at(0).with_name(name).touch()
    folder.fs.create_dir(folder.path("gauges", "date=yesterday"))
    for name in ("_SUCCESS", ".part-1-1.parquet", "_manifest.json"):
        at(0).with_name(name).touch()
    found = listing(folder, GAUGES)
    assert names(found.files) == ["part-000-000.parquet"]
    assert reasons(found) == {
        "part-001-001.parquet": "not Parquet",
        "part-002-002.parquet": "not a file of an export",
        "part-003-003.parquet": "unknown version 9 of gauges",
        "part-004-004.parquet": "holds counters, not gauges",
        "part-005-005.parquet": "columns missing or of another type: state, value",
        "part-006-006.parquet": "columns missing or of another type: value",
        "part-007-007.parquet": "not Parquet",
        "part-008-008.jsonl": "not JSON Lines of an export",
        "part-009-009.jsonl": "holds health, not gauges",
        "part-2-1.parquet": "not a file of an export",
        "notes.txt": "not a file of an export",
        "part-1-2.csv": "not a file of an export",
        "date=yesterday": "not a partition",
    }


def test_partitions_are_pruned_by_date(folder):
    table = table_of(GAUGES, rows_of(GAUGES, 1))
    for day in range(10, 15):
        publish(folder, GAUGES, f"2026-11-{day}", PART, "1", "1", [table])
    found = listing(folder, GAUGES, "2026-11-11", "2026-11-13")
    assert [file.date for file in found.files] == ["2026-11-11", "2026-11-12", "2026-11-13"]


def test_no_folder_is_an_empty_listing(folder):
    assert listing(folder, GAUGES).files == []


def test_a_url_is_a_folder_too(tmp_path):
    folder = Folder.of(f"file://{tmp_path}/x/")
    assert "//" not in put(folder)
    assert len(listing(Folder.of(str(tmp_path / "x")), GAUGES).files) == 1

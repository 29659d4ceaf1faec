"""A day's files become one; no reader misses or doubles a row, at any moment."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from pyarrow import parquet

from routemaster.domain.datasets import ATTEMPTS
from routemaster.export.arrow import table_of
from routemaster.export.compact import compact, compact_day
from routemaster.export.files import DAY, JSONL, PARQUET, PART, listing, read_all
from routemaster.export.folder import Folder
from routemaster.export.manifest import NAME, entries, write_manifest
from routemaster.export.retain import retain
from routemaster.export.writing import LEFTOVER, publish
from tests.export.stepping import Killed, Steps

DATE, AT_MS = "2025-11-18", 1_763_424_000_000


def put(folder, first, last=None, kind=PART, format=PARQUET, date=DATE, times=1):
    """A file with a row for each number of its range, `times` of them."""
    last = first if last is None else last
    rows = [
        (f"{n}.{k}", f"s{n % 3}", "0", f"b{n}", 1, 1, 9, 1, AT_MS, AT_MS + n, AT_MS + n, 0, n,
         "delivered", 200, "", "w")
        for n in range(first, last + 1) for k in range(times)
    ]  # fmt: skip
    table = table_of(ATTEMPTS, rows)
    return publish(folder, ATTEMPTS, date, kind, f"{first:03}", f"{last:03}", [table], format)


def ids(folder) -> Counter[str]:
    found = listing(folder, ATTEMPTS)
    return Counter(read_all(folder, ATTEMPTS, found.files)["id"].to_pylist())


def names(folder):
    return sorted(p.name for p in (Path(folder.root) / "attempts" / f"date={DATE}").iterdir())


def test_the_day_is_one_sorted_file(folder):
    for number in (1, 2, 3):
        put(folder, number)
    put(folder, 4, 9, format=JSONL)
    before = ids(folder)
    [made] = compact(folder, grace_s=0)
    assert names(folder) == ["day-001-009.parquet"]
    assert (made.files, made.rows) == (4, 9)
    assert ids(folder) == before
    table = parquet.read_table(made.path)
    order = [(row["subscriber"], row["started_at"]) for row in table.to_pylist()]
    assert order == sorted(order)
    assert compact(folder, grace_s=0) == []


def test_what_comes_late_is_taken_in_the_next_time(folder):
    put(folder, 1)
    put(folder, 2)
    compact(folder, grace_s=0)
    put(folder, 3)
    compact(folder, grace_s=0)
    assert names(folder) == ["day-001-003.parquet"]
    assert len(ids(folder)) == 3


def test_parts_stay_for_who_listed_before_and_go_later(folder):
    put(folder, 1)
    put(folder, 2)
    early = listing(folder, ATTEMPTS).files
    compact(folder, grace_s=3600)
    assert len(read_all(folder, ATTEMPTS, early)) == len(ids(folder)) == 2
    compact(folder, grace_s=3600)
    assert len(names(folder)) == 3
    day = folder.path("attempts", f"date={DATE}", "day-001-002.parquet")
    os.utime(day, (1, 1))
    compact(folder, grace_s=3600)
    assert names(folder) == ["day-001-002.parquet"]


def test_only_the_days_asked_for(folder):
    for day in (16, 17, 18):
        put(folder, 1, date=f"2025-11-{day}")
        put(folder, 2, date=f"2025-11-{day}")
    made = compact(folder, since="2025-11-17", before="2025-11-18")
    assert [one.path.split("/")[-2] for one in made] == ["date=2025-11-17"]


def test_a_file_that_cannot_be_read_is_never_hidden_by_a_larger_one(folder, caplog):
    put(folder, 1)
    bad = put(folder, 2)
    put(folder, 3)
    whole = Path(bad).read_bytes()
    os.truncate(bad, 200)
    assert compact(folder, grace_s=0) == []
    assert "part-002-002.parquet why=truncated" in caplog.text
    Path(bad).write_bytes(whole)
    assert compact(folder, grace_s=0)[0].rows == 3


def test_a_large_day_is_sorted_in_pieces(folder, monkeypatch):
    monkeypatch.setattr("routemaster.export.compact.PIECE_BYTES", 1)
    for number in range(3):
        put(folder, number, times=4)
    [made] = compact(folder, grace_s=0)
    assert parquet.read_metadata(made.path).num_row_groups == 3
    assert sum(ids(folder).values()) == 12


def scattered(folder) -> Counter[str]:
    put(folder, 1, 2)
    put(folder, 1)  # of a compaction that died
    put(folder, 3, format=JSONL)
    put(folder, 4)
    return ids(folder)


def test_killed_at_each_step_and_read_at_each_step(tmp_path):
    plain = Folder.of(str(tmp_path / "0"))
    scattered(plain)
    steps = Steps(0, lambda: None)
    compact_day(Folder(steps.wrap(plain.fs), plain.root), ATTEMPTS, DATE, 0)
    assert steps.taken > 20
    for number in range(1, steps.taken + 1):
        folder = Folder.of(str(tmp_path / str(number)))
        expected = scattered(folder)
        killing = Steps(number, partial(look_and_die, folder, expected))
        with pytest.raises(Killed):
            compact_day(Folder(killing.wrap(folder.fs), folder.root), ATTEMPTS, DATE, 0)
        assert ids(folder) == expected
        compact_day(folder, ATTEMPTS, DATE, 0)
        assert ids(folder) == expected
        left = [name for name in names(folder) if not name.startswith(LEFTOVER)]
        assert left == ["day-001-004.parquet"]


def look_and_die(folder, expected):
    assert ids(folder) == expected
    raise Killed


def test_leftovers_are_swept_when_they_are_old(folder):
    put(folder, 1)
    for name, at in (("old", 1), ("new", None)):
        path = Path(folder.path("attempts", f"date={DATE}", LEFTOVER + name))
        path.touch()
        if at:
            os.utime(path, (at, at))
    compact(folder)
    assert names(folder) == [LEFTOVER + "new", "day-001-001.parquet", "part-001-001.parquet"]


# Retention


def test_partitions_past_retention_are_dropped(folder):
    for day in (10, 11, 12):
        put(folder, 1, date=f"2025-11-{day}")
    folder.fs.create_dir(folder.path("attempts", "date=of-my-own"))
    folder.fs.create_dir(folder.path("notes"))
    gone = retain(folder, "2025-11-14", 3)
    assert gone == [folder.path("attempts", "date=2025-11-10")]
    left = [info.base_name for info in folder.entries("attempts")]
    assert left == ["date=2025-11-11", "date=2025-11-12", "date=of-my-own"]
    assert retain(folder, "2099-01-01", 0) == []


# Manifest


def test_the_manifest_says_what_is_there(folder):
    put(folder, 1, 3)
    put(folder, 4, format=JSONL)
    manifest = write_manifest(folder, ATTEMPTS)
    assert (manifest["rows"], manifest["first"], manifest["last"]) == (4, "001", "004")
    assert [e.rows for e in entries(folder, ATTEMPTS)] == [3, 1]
    assert sum(e.bytes for e in entries(folder, ATTEMPTS)) == manifest["bytes"]


WRONG = ["", "{", "[]", '{"dataset": "attempts"}', '{"files": 1}']
WRONG.append('{"dataset": "attempts", "version": 1, "files": [{"a": 1}]}')


@pytest.mark.parametrize("said", [None, *WRONG])
def test_a_manifest_that_is_missing_or_wrong_is_made_anew(folder, said):
    put(folder, 1, 3)
    expected = write_manifest(folder, ATTEMPTS)
    path = Path(folder.path("attempts", NAME))
    path.unlink()
    if said is not None:
        path.write_text(said)
    assert write_manifest(folder, ATTEMPTS) == expected
    assert len(ids(folder)) == 3  # whatever it said


def test_a_manifest_forgets_what_was_compacted(folder):
    put(folder, 1)
    put(folder, 2)
    write_manifest(folder, ATTEMPTS)
    compact(folder)
    write_manifest(folder, ATTEMPTS)
    assert [e.path for e in entries(folder, ATTEMPTS)] == [f"date={DATE}/day-001-002.parquet"]


def test_a_day_of_json_lines_alone_becomes_parquet(folder):
    put(folder, 1, 3, DAY, JSONL)
    compact(folder, grace_s=0)
    assert names(folder) == ["day-001-003.parquet"]

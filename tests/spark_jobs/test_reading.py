"""An export is read so that each row counts once, and nothing is read in half."""

from __future__ import annotations

from datetime import date

import pytest

from routemaster.domain.datasets import ATTEMPTS, DATASETS, GAUGES
from spark_jobs.files import NoExport
from spark_jobs.reading import Export
from tests.spark_jobs.rows import BASE, at, export_file, row


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def read(spark, tmp_path, said):
    def ids(first_day=None, last_day=None, dataset=ATTEMPTS, column="id"):
        rows = Export(spark, str(tmp_path), first_day, last_day, said.append).read(dataset)
        return sorted(getattr(one, column) for one in rows.collect())

    return ids


def attempts(*ids: str):
    return [row(ATTEMPTS, id=one) for one in ids]


def test_each_dataset_comes_back_as_it_was_written(spark, tmp_path, said):
    for suffix in ("parquet", "jsonl"):
        for dataset in DATASETS.values():
            export_file(tmp_path / suffix, dataset, [row(dataset)], f"part-1-2.{suffix}")
            read = Export(spark, str(tmp_path / suffix), say=said.append).read(dataset)
            assert read.toArrow().to_pylist() == [BASE[dataset.name]]
    assert said == []


def test_only_the_wanted_days_are_listed(tmp_path, read, said):
    for number in (1, 2, 3, 4):
        export_file(tmp_path, ATTEMPTS, attempts(str(number)), day=f"2026-03-0{number}")
    broken = tmp_path / "attempts" / "date=2026-03-01" / "part-9-9.parquet"
    broken.write_text("nobody may look at this")
    assert read(date(2026, 3, 2), date(2026, 3, 3)) == ["2", "3"]
    assert said == []


def test_nothing_exported_yet_is_no_rows_and_the_right_columns(spark, tmp_path, said):
    rows = Export(spark, str(tmp_path), say=said.append).read(GAUGES)
    assert (rows.columns, rows.count()) == ([c.name for c in GAUGES.columns], 0)


def test_a_mistyped_input_is_an_error_and_not_an_empty_report(spark, tmp_path):
    with pytest.raises(NoExport, match="nowhere: no such directory"):
        Export(spark, str(tmp_path / "nowhere")).read(GAUGES)


def test_parts_that_were_compacted_are_ignored(tmp_path, read):
    export_file(tmp_path, ATTEMPTS, attempts("1", "2"), "part-100-102.parquet")
    export_file(tmp_path, ATTEMPTS, attempts("3"), "part-103-103.parquet")
    export_file(tmp_path, ATTEMPTS, attempts("1", "2", "3"), "day-100-103.parquet")
    export_file(tmp_path, ATTEMPTS, attempts("4"), "part-104-104.parquet")
    assert read() == ["1", "2", "3", "4"]


def test_a_broken_compacted_file_does_not_hide_its_parts(tmp_path, read, said):
    export_file(tmp_path, ATTEMPTS, attempts("1"), "part-100-102.parquet")
    whole = export_file(tmp_path, ATTEMPTS, attempts("1"), "day-100-103.parquet")
    whole.write_bytes(whole.read_bytes()[:-10])
    assert read() == ["1"]
    assert len(said) == 1 and "day-100-103.parquet: truncated" in said[0]


def test_ranges_that_overlap_give_each_row_once(tmp_path, read):
    export_file(tmp_path, ATTEMPTS, attempts("1", "2"), "part-100-102.parquet")
    export_file(tmp_path, ATTEMPTS, attempts("2", "3"), "part-101-103.parquet")
    export_file(tmp_path, ATTEMPTS, attempts("3", "4"), "part-103-104.jsonl")
    assert read() == ["1", "2", "3", "4"]


def test_the_same_range_in_both_formats_is_read_once(tmp_path, read):
    export_file(tmp_path, ATTEMPTS, attempts("1"), "part-1-2.parquet")
    export_file(tmp_path, ATTEMPTS, attempts("1"), "part-1-2.jsonl")
    assert read() == ["1"]


def test_what_is_not_ours_is_named_and_skipped(tmp_path, read, said):
    good = export_file(tmp_path, ATTEMPTS, attempts("1"), "part-1-1.parquet")
    for name in ("_SUCCESS", ".part-2-2.parquet.tmp"):
        (good.parent / name).write_text("not data")
    (good.parent / "notes.txt").write_text("hello")
    (good.parent / "part-3-3.parquet").write_text("no parquet at all")
    (good.parent.parent / "old").mkdir()
    export_file(tmp_path, ATTEMPTS, attempts("4"), "part-4-4.parquet", tag="attempts/2")
    export_file(tmp_path, ATTEMPTS, attempts("5"), "part-5-5.jsonl", tag="attempts/9")
    export_file(tmp_path, GAUGES, [row(GAUGES)], "part-6-6.parquet", tag="attempts/1").rename(
        good.parent / "part-6-6.parquet"
    )
    assert read() == ["1"]
    assert sorted(line.split(": ")[0].rpartition("/")[2] for line in said) == [
        "notes.txt", "old", "part-3-3.parquet", "part-4-4.parquet", "part-5-5.jsonl",
        "part-6-6.parquet",
    ]  # fmt: skip
    assert any("unknown version 2 of attempts" in line for line in said)


def test_a_json_file_with_one_bad_line_is_skipped_whole(tmp_path, read, said):
    export_file(tmp_path, ATTEMPTS, attempts("1", "2"), "part-1-2.jsonl")
    cut = export_file(tmp_path, ATTEMPTS, attempts("3", "4"), "part-3-4.jsonl")
    cut.write_text(cut.read_text()[:-30])
    without_id = export_file(tmp_path, ATTEMPTS, attempts("5"), "part-5-5.jsonl")
    without_id.write_text(without_id.read_text().replace('"id"', '"di"'))
    assert read() == ["1", "2"]
    assert [line.split(":")[0].rpartition("/")[2] for line in said] == [
        "part-3-4.jsonl", "part-5-5.jsonl",
    ]  # fmt: skip


def test_times_are_utc_whatever_the_machine_says(spark, tmp_path, said):
    export_file(tmp_path, GAUGES, [row(GAUGES, taken_at=at("23:59:59.999"))])
    rows = Export(spark, str(tmp_path), say=said.append).read(GAUGES)
    shown = rows.selectExpr("date_format(taken_at, 'HH:mm:ss.SSS') AS time").collect()
    assert [one.time for one in shown] == ["23:59:59.999"]

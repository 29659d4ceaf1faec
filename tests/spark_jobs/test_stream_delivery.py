"""The stream says what the batch report says, whatever comes late, twice, or compacted."""

from __future__ import annotations

import random
import shutil
from datetime import timedelta

import pytest

from routemaster.domain.datasets import ATTEMPTS, COUNTERS
from spark_jobs import delivery_report, stream_delivery
from tests.spark_jobs.rows import START, attempt_row, export_file, row


def attempts(day: int, first: int, last: int):
    dice = random.Random(first)
    for number in range(first, last + 1):
        created = START + timedelta(days=day, milliseconds=dice.randrange(80_000_000))
        outcome, error = dice.choice([("delivered", ""), ("failed", "timeout")])
        yield attempt_row(
            ATTEMPTS, created, dice.randrange(60_000), dice.randrange(900), id=f"{number}-0",
            subscriber=dice.choice(["mailer", "search"]), outcome=outcome, error=error,
        )  # fmt: skip


def counters(day: int, epoch: str, value: int):
    for hour in range(0, 24, 3):
        time = START + timedelta(days=day, hours=hour)
        yield row(COUNTERS, taken_at=time, epoch=epoch, value=value + hour * 7)


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "export").mkdir()
    return tmp_path / "export", tmp_path / "streamed"


@pytest.fixture
def turn(folders):
    root, out = folders

    def run(*options: str) -> int:
        return stream_delivery.main(
            ["--input", str(root), "--output", str(out), "--once", "--no-percentiles", *options]
        )

    return run


@pytest.fixture
def put(folders):
    root, _ = folders

    def write(dataset, rows, name, day=0):
        return export_file(root, dataset, rows, name, day=f"2026-03-0{2 + day}")

    return write


def told(spark, folders):
    """What the stream has written, and what the batch report says of the same export."""
    root, out = folders
    batch = str(out.with_name("batch"))
    arguments = ["--input", str(root), "--output", batch, "--no-percentiles", "--overwrite"]
    assert delivery_report.main(arguments) == 0
    return [
        sorted(
            spark.read.parquet(str(path)).drop("date").toArrow().to_pylist(),
            key=lambda one: (one["subscriber"], one["period"]),
        )
        for path in (out, batch)
    ]


@pytest.mark.slow
def test_the_numbers_are_those_of_the_batch_report(spark, folders, put, turn, capsys, monkeypatch):
    """Although the first turn dies in the middle, and what comes then is late and comes twice."""
    refresh = stream_delivery.Refresher.refresh

    def dies_after_a_day(self, spark, first, last):
        refresh(self, spark, first, last)
        raise RuntimeError("killed")

    put(ATTEMPTS, attempts(0, 100, 120), "part-100-120.parquet")
    put(COUNTERS, counters(0, "e1", 0), "part-100-120.parquet")
    put(COUNTERS, counters(2, "e1", 500), "part-121-140.parquet", day=2)
    with monkeypatch.context() as patched:
        patched.setattr(stream_delivery.Refresher, "refresh", dies_after_a_day)
        assert turn() == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "reported 2026-03-02" and said[-1].startswith("stream_delivery: ")
    # Late, for a day that has been reported, and for the one that counters grow from.
    put(ATTEMPTS, attempts(0, 121, 130), "part-121-130.jsonl")
    put(COUNTERS, counters(0, "e1", 100), "part-121-130.parquet")
    # Once more what is there, in a range that is partly known, and compacted with the parts left.
    put(ATTEMPTS, attempts(0, 100, 120), "part-100-120.jsonl")
    put(ATTEMPTS, [*attempts(0, 121, 130), *attempts(0, 131, 135)], "part-125-135.parquet")
    put(ATTEMPTS, attempts(1, 200, 220), "part-200-220.parquet", day=1)
    put(ATTEMPTS, attempts(1, 200, 220), "day-200-220.parquet", day=1)
    put(ATTEMPTS, [], "part-300-301.parquet", day=2)
    assert turn() == 0
    streamed, batch = told(spark, folders)
    assert streamed == batch and len(batch) > 20
    assert sum(one["attempts"] for one in batch) == 21 + 10 + 5 + 21
    capsys.readouterr()
    assert turn() == 0
    assert capsys.readouterr().err == ""  # nothing is new: nothing is done


def test_days_beyond_the_limit_are_left_alone_and_named(spark, folders, put, turn, capsys):
    put(ATTEMPTS, attempts(0, 100, 101), "part-100-101.parquet")
    put(ATTEMPTS, attempts(3, 102, 103), "part-102-103.parquet", day=3)
    assert turn("--late-days", "2") == 0
    said = capsys.readouterr().err.splitlines()
    assert said == ["too late, not reported anew: 2026-03-02", "reported 2026-03-05"]


def test_without_an_export_there_is_an_error(spark, folders, turn, capsys):
    shutil.rmtree(folders[0])
    assert turn() == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("stream_delivery: ") and "no such directory" in line


def test_neighbouring_days_are_reported_together():
    days = [(START + timedelta(days=n)).date() for n in (5, 0, 1, 3, 2)]
    assert stream_delivery.stretches(days) == [(days[1], days[3]), (days[0], days[0])]

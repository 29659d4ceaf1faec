"""Every number of the delivery report is that of a plain reading of the same rows."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routemaster.domain.datasets import ATTEMPTS, COUNTERS
from spark_jobs.delivery_report import main, report
from tests.spark_jobs import cases
from tests.spark_jobs.cases import differences
from tests.spark_jobs.rows import START, at, attempt_row, export_file, row

Key = tuple[str, datetime]
TRIED = ("delivered", "failed", "gone")


def period(time: datetime, by: str) -> datetime:
    hour = time.replace(minute=0, second=0, microsecond=0)
    return hour.replace(hour=0) if by == "day" else hour


def rank(values: list[int], percent: int) -> int | None:
    return sorted(values)[math.ceil(percent * len(values) / 100) - 1] if values else None


def oracle(attempts, counters, by):
    rows: dict[Key, dict[str, Any]] = {}
    groups = defaultdict(list)
    for one in attempts:
        groups[one["subscriber"], period(one["finished_at"], by)].append(one)
    grown = counted(counters, by)
    for key in groups.keys() | grown.keys():
        rows[key] = of_attempts(groups[key]) | of_counters(grown.get(key, Counter()))
    return rows


def of_attempts(group):
    of = {o: [one for one in group if one["outcome"] == o] for o in cases.OUTCOMES}
    tried = [one for one in group if one["outcome"] in TRIED]
    samples = {
        "took": [one["took_ms"] for one in tried],
        "first": [max(0, one["age_ms"] - one["took_ms"]) for one in tried if one["attempt"] == 1],
        "delivered": [max(0, one["age_ms"]) for one in of["delivered"]],
    }
    batches = len(of["delivered"])
    return {
        "events": sum(one["events"] for one in of["delivered"]),
        "batches": batches,
        "attempts": len(tried),
        "failed": len(of["failed"]),
        "gone": len(of["gone"]),
        "throttled": len(of["throttled"]),
        "first_attempts": len(samples["first"]),
        "success_rate": batches / len(tried) if tried else None,
        "attempts_per_batch": len(tried) / batches if batches else None,
        "by_error": dict(Counter(one["error"] for one in group if one["error"])),
        "by_status": dict(Counter(one["http_status"] for one in group)),
    } | {f"{name}_p{p}_ms": rank(samples[name], p) for name in samples for p in (50, 95, 99)}


def counted(counters, by):
    """Per series and epoch, snapshot after snapshot: what it grew, where it was seen."""
    series = defaultdict(set)
    for one in counters:
        key = (one["subscriber"], one["name"], one["outcome"], one["epoch"])
        series[key].add((one["taken_at"], one["value"]))
    grown: dict[Key, Counter[Any]] = defaultdict(Counter)
    for (subscriber, name, outcome, _), snapshots in series.items():
        ordered = sorted(snapshots)
        for (_, before), (time, value) in zip(ordered, ordered[1:], strict=False):
            if value > before:
                grown[subscriber, period(time, by)][name, outcome] += value - before
    return {key: found for key, found in grown.items() if is_shown(found)}


def is_shown(grown):
    return any(
        name in ("delivery.attempts", "events.delivered", "delivery.time") for name, _ in grown
    )


def of_counters(grown):
    outcomes = {outcome: n for (name, outcome), n in grown.items() if name == "delivery.attempts"}
    count = sum(outcomes.values())
    mean = grown["delivery.time", None] / count if count else None
    found = {
        "counted_attempts": count,
        "counted_by_outcome": outcomes,
        "counted_events": grown["events.delivered", None],
        "counted_mean_ms": mean,
        "counted_deviation_ms": None,
    }
    if mean is not None:
        variance = grown["delivery.time2", None] / count - mean**2
        found["counted_deviation_ms"] = math.sqrt(max(0, variance))
    return found


def rows_of(table):
    found = {}
    for one in table.toArrow().to_pylist(maps_as_pydicts="strict"):
        key = (one.pop("subscriber"), one.pop("period"))
        assert key not in found
        found[key] = one
    return found


@pytest.mark.slow
@pytest.mark.parametrize("by", ["hour", "day"])
@cases.FEW
@given(data=st.data())
def test_every_number_is_the_oracles(frame, by, data):
    attempts = cases.drawn(cases.attempts, 40, data.draw)
    counters = cases.drawn(cases.counters, 40, data.draw)
    made = rows_of(report(frame(ATTEMPTS, attempts), frame(COUNTERS, counters), by=by))
    wanted = oracle(attempts, counters, by)
    assert made.keys() == wanted.keys()
    assert {key: found for key in made if (found := differences(made[key], wanted[key]))} == {}


def test_no_attempts_and_no_counters_are_no_rows(frame):
    assert rows_of(report(frame(ATTEMPTS, []), frame(COUNTERS, []))) == {}


def test_a_sample_of_one_subscriber_is_the_same_each_time_and_counts_all(frame):
    attempts = [attempt_row(ATTEMPTS, at("03:10"), n, n, id=f"{n}-0") for n in range(200)]
    first, again = (
        rows_of(report(frame(ATTEMPTS, rows), frame(COUNTERS, []), sample=10))
        for rows in (attempts, attempts[::-1])
    )
    assert first == again
    (one,) = first.values()
    assert one["attempts"] == 200 and 50 < one["took_p50_ms"] < 150


@pytest.fixture
def export(tmp_path):
    root = tmp_path / "export"
    for day in (2, 3, 4):
        time = START + timedelta(days=day - 2, hours=3)
        name = f"2026-03-0{day}"
        attempts = [attempt_row(ATTEMPTS, time, 100, 20, id=f"{day}-0")]
        export_file(root, ATTEMPTS, attempts, day=name)
        snapshots = [
            row(COUNTERS, name="events.delivered", taken_at=time, value=100 * day),
            row(COUNTERS, name="events.delivered", taken_at=time + timedelta(hours=1),
                value=100 * day + 7),
        ]  # fmt: skip
        export_file(root, COUNTERS, snapshots, day=name)
    return root


def test_a_day_is_the_same_alone_as_among_others(spark, export, tmp_path):
    for name, options in {"all": [], "one": ["--from", "2026-03-03", "--to", "2026-03-03"]}.items():
        out = str(tmp_path / name)
        assert main(["--input", str(export), "--output", out, "--by", "day", *options]) == 0
    whole, one = (rows_of(spark.read.parquet(str(tmp_path / name))) for name in ("all", "one"))
    key = ("mailer", at("1 00:00"))
    assert one == {key: whole[key]}
    assert (one[key]["counted_events"], one[key]["events"]) == (100, 10)


def test_a_report_is_not_written_over_something_unasked(spark, export, tmp_path, capsys):
    arguments = ["--input", str(export), "--output", str(tmp_path / "r"), "--format", "csv"]
    assert main([*arguments, "--no-percentiles"]) == 0
    assert main([*arguments, "--no-percentiles"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and "--overwrite" in said[0] and str(tmp_path / "r") in said[0]
    assert main([*arguments, "--no-percentiles", "--overwrite"]) == 0
    (written,) = (tmp_path / "r").glob("*.csv")
    head, first = written.read_text().splitlines()[:2]
    assert head.startswith("subscriber,period,events") and "took_p50_ms" not in head
    assert first.startswith("mailer,2026-03-02T03:00:00.000Z,10,1,1,")


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--input", "/no/such/export"], "no such directory"),
        (["--input", ".", "--from", "2026-03-03", "--to", "2026-03-02"], "is after --to"),
        (["--input", "nothing://here"], "--input nothing://here: "),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(spark, capsys, options, complaint):
    assert main(options) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("delivery_report: ") and complaint in line

"""Measures the Spark reports beside Spark's own floor, DuckDB and Polars, in the same run:
`python -m bench.reports [--rows N] [--quick]`.

The floor is what no report can be faster than: the same files, a count of the rows and sums of the
columns that the delivery report reads. A run in which engines disagree is VOID: exit status 3.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from bench import engines
from bench.attempts import write_attempts
from bench.load import Void
from bench.report import Goal, print_goals
from bench.tables import table
from routemaster.domain.datasets import ATTEMPTS, COUNTERS, DROPS, GAUGES
from spark_jobs import delivery_report, slo_report, stream_delivery, traffic_report
from spark_jobs.objectives import Objectives
from spark_jobs.reading import Export
from spark_jobs.session import open_session
from spark_jobs.timeline import last_time

VOID = 3
ROWS, QUICK_ROWS, TINY_ROWS = 20_000_000, 2_000_000, 20_000
SHARES = (20, 4, 1)  # 1, 5 and 20 million
ROUNDS = 3
PLAIN_OF_FLOOR, PERCENTILES_OF_FLOOR = 1.5, 3.0
# Time for each row, at the most rows over that at a quarter of them; what is above 1 is noise.
MOST_GROWTH = 1.15
# Redis needs about 200 us for each batch that is delivered: there cannot be more in a second.
BUS_PEAK, TIMES_PEAK = 5_000, 10
PLAIN, PERCENTILES, FLOOR = "delivery", "delivery, percentiles", "floor: count and sums"
Frame = Callable[[], DataFrame]


@dataclass(frozen=True)
class Timed:
    rows: int
    what: str
    seconds: float
    of_floor: float


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench.reports", description="Measures the reports.")
    parser.add_argument("--rows", type=int, default=0, help=f"attempts ({ROWS:,})")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS:,} attempts, one round")
    parser.add_argument("--tiny", action="store_true", help="for the tests; figures mean nothing")
    asked = parser.parse_args(words)
    rows = asked.rows or (TINY_ROWS if asked.tiny else QUICK_ROWS if asked.quick else ROWS)
    try:
        measure(rows, 1 if asked.tiny or asked.quick else ROUNDS)
    except Void as reason:
        print(f"\nVOID: {reason}")
        return VOID
    return 0


def measure(rows: int, rounds: int) -> None:
    found: list[Timed] = []
    with tempfile.TemporaryDirectory(prefix="rm-bench-") as folder:
        warm(Path(folder) / "warm")
        for share in SHARES:
            root = str(Path(folder) / str(share))
            write_attempts(root, rows // share)
            found += measure_size(root, rows // share, rounds)
        streamed_s = stream(f"{folder}/{SHARES[-1]}", f"{folder}/stream")
    print(f"\nThe stream's first turn, over all of it: {streamed_s:.1f} s", flush=True)
    print_goals([*goals(found), stream_goal(rows / streamed_s)])


def stream(root: str, output: str) -> float:
    """A stream that begins, and has everything before it."""
    began = time.perf_counter()
    if stream_delivery.main(["--input", root, "--output", output, "--once"]):
        raise Void("the stream failed")
    return time.perf_counter() - began


def stream_goal(rows_per_s: float) -> Goal:
    wanted = BUS_PEAK * TIMES_PEAK
    name = f"the stream keeps up with {TIMES_PEAK} times what a bus can deliver"
    return Goal(name, "attempts a second, its start and its percentiles included",
                f">= {wanted:,}", f"{rows_per_s:,.0f}", rows_per_s >= wanted)  # fmt: skip


def measure_size(root: str, rows: int, rounds: int) -> list[Timed]:
    """In turns, so that what else the machine does hits all alike."""
    runs = all_runs(root)
    seconds: dict[str, list[float]] = {what: [] for what in runs}
    for _ in range(rounds):
        for what, run in runs.items():
            began = time.perf_counter()
            run()
            seconds[what].append(time.perf_counter() - began)
    floor = statistics.median(seconds[FLOOR])
    timed = [
        Timed(rows, what, statistics.median(all_s), statistics.median(all_s) / floor)
        for what, all_s in seconds.items()
    ]
    print(of_times(timed), flush=True)
    return timed


def all_runs(root: str) -> dict[str, Callable[[], None]]:
    runs = {what: spark_run(frame) for what, frame in frames(root).items()}
    expected = spark_numbers(root)
    for name, engine in (("DuckDB", engines.duckdb_delivery), ("Polars", engines.polars_delivery)):
        for what, percentiles in ((PLAIN, False), (PERCENTILES, True)):
            runs[f"{name}: {what}"] = checked(name, engine(root, percentiles), expected)
    return runs


def frames(root: str) -> dict[str, Frame]:
    export = Export(open_session("bench"), root)
    attempts, counters = export.read(ATTEMPTS), export.read(COUNTERS)
    drops, gauges = export.read(DROPS), export.read(GAUGES)
    until = last_time((attempts, ATTEMPTS))
    return {
        FLOOR: lambda: floor(attempts),
        PLAIN: lambda: delivery_report.report(attempts, counters, percentiles=False),
        PERCENTILES: lambda: delivery_report.report(attempts, counters),
        "traffic: costs": lambda: traffic_report.costs(attempts, gauges),
        "slo: attainment": lambda: slo_report.attainment(attempts, drops, Objectives(), until),
    }


def floor(attempts: DataFrame) -> DataFrame:
    texts = ("subscriber", "outcome", "error")
    numbers = ("attempt", "events", "http_status", "took_ms", "age_ms")
    return attempts.agg(
        F.count(F.lit(1)),
        F.max("finished_at"),
        *(F.sum(name) for name in numbers),
        *(F.max(name) for name in texts),
    )


def spark_run(frame: Frame) -> Callable[[], None]:
    return lambda: frame().write.format("noop").mode("overwrite").save()


def spark_numbers(root: str) -> engines.Numbers:
    rows = frames(root)[PLAIN]().agg(
        F.count(F.lit(1)).alias("rows"), F.sum("attempts"), F.sum("events")
    )
    found = rows.collect()[0]
    return int(found[0]), int(found[1]), int(found[2])


def checked(
    name: str, run: Callable[[], engines.Numbers], expected: engines.Numbers
) -> Callable[[], None]:
    def run_and_compare() -> None:
        found = run()
        if found != expected:
            raise Void(f"{name} counts {found}, Spark {expected} (rows, attempts, events)")

    return run_and_compare


def warm(root: Path) -> None:
    """A session's first query takes seconds: classes are loaded and code is compiled."""
    write_attempts(str(root), TINY_ROWS)
    for frame in frames(str(root)).values():
        spark_run(frame)()


def of_times(rows: list[Timed]) -> str:
    return table(
        f"{rows[0].rows:,} attempts of a week, in day files; median seconds",
        ["what", "seconds", "of_floor", "rows/s"],
        [(r.what, r.seconds, r.of_floor, r.rows / r.seconds) for r in rows],
    )


def goals(found: list[Timed]) -> list[Goal]:
    by = {(row.rows, row.what): row for row in found}
    quarter, most = sorted({row.rows for row in found})[-2:]
    plain, ranks = by[most, PLAIN], by[most, PERCENTILES]
    growth = max(
        (by[most, what].seconds / most) / (by[quarter, what].seconds / quarter)
        for what in (PLAIN, PERCENTILES)
    )
    return [
        at_most("the delivery report without percentiles is near Spark's floor",
                f"median seconds at {most:,} rows over those of the floor",
                PLAIN_OF_FLOOR, plain.of_floor),
        at_most("so is the one with percentiles", "the same", PERCENTILES_OF_FLOOR,
                ranks.of_floor),
        at_most("the reports' time grows no faster than the data",
                f"seconds per row at {most:,} rows over those at {quarter:,}, the higher of both",
                MOST_GROWTH, growth),
    ]  # fmt: skip


def at_most(name: str, computed: str, wanted: float, found: float) -> Goal:
    return Goal(name, computed, f"<= {wanted:g}x", f"{found:.2f}x", found <= wanted)


if __name__ == "__main__":
    sys.exit(main())

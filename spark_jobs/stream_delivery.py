"""Keeps the delivery report up to date while the bus goes on exporting.

    python -m spark_jobs.stream_delivery --input var/export --output var/delivery --every 60
    python -m spark_jobs.stream_delivery --input var/export --output var/delivery --once

Writes the rows of spark_jobs/delivery_report.py as Parquet, in a folder for each day. Structured
Streaming notices new files, and remembers under `--checkpoint` which it has seen. A day in which
there is a new file is reported anew, by the batch report itself: so the numbers are the same as if
the report were made now, whatever comes late, twice, or compacted, and a turn that dies in the
middle is done again. The day after new counters is reported too, as it grows from them.

Not looked at: files of days more than `--late-days` before the newest day (all are, by default),
and files that vanish: a day that retention removed keeps its rows.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

if not __package__:  # spark-submit runs this file alone: let it find the others
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from routemaster.domain.datasets import ATTEMPTS, COUNTERS, Dataset
from spark_jobs import delivery_report, report
from spark_jobs.files import NoExport, Root, Say, days_of
from spark_jobs.java import NoJava
from spark_jobs.reading import Export, on_stderr
from spark_jobs.session import open_session

NAMES = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY, date STRING"
# By default Spark forgets files a week older than the newest; one copied here later may be.
NEVER_TOO_OLD = "36500d"


@dataclass(frozen=True, slots=True)
class Refresher:
    """One turn: reports the days anew in which something is new."""

    options: argparse.Namespace
    say: Say = on_stderr

    def __call__(self, new_files: DataFrame, turn: int) -> None:
        changed = new_files.select("dataset", "date").distinct().collect()  # some days, no more
        if not changed:
            return
        root = Root.open(self.options.input)
        days = {date.fromisoformat(row.date) for row in changed if is_day(row.date)}
        counted = {
            date.fromisoformat(row.date)
            for row in changed
            if row.dataset == COUNTERS.name and is_day(row.date)
        }
        days |= days_after(days_of(root, COUNTERS), counted)
        for first, last in stretches(self.not_too_late(root, days)):
            self.refresh(new_files.sparkSession, first, last)

    def not_too_late(self, root: Root, days: set[date]) -> set[date]:
        if not self.options.late_days:
            return days
        newest = max([*days_of(root, ATTEMPTS), *days_of(root, COUNTERS)])
        oldest = newest - timedelta(days=self.options.late_days)
        for day in sorted(days):
            if day < oldest:
                self.say(f"too late, not reported anew: {day}")
        return {day for day in days if day >= oldest}

    def refresh(self, spark: SparkSession, first: date, last: date) -> None:
        export = Export(spark, self.options.input, first, last, self.say)
        rows = delivery_report.build(export, self.options)
        with_date = rows.withColumn("date", F.date_format("period", "yyyy-MM-dd"))
        writer = with_date.write.mode("overwrite").partitionBy("date")
        writer.option("partitionOverwriteMode", "dynamic").parquet(self.options.output)
        self.say(f"reported {first}" if first == last else f"reported {first} to {last}")


def is_day(text: str | None) -> bool:
    try:
        return bool(date.fromisoformat(text or ""))
    except ValueError:
        return False


def days_after(existing: Iterable[date], days: set[date]) -> set[date]:
    ordered = sorted(existing)
    following = dict(zip(ordered, ordered[1:], strict=False))
    return {following[day] for day in days if day in following}


def stretches(days: Iterable[date]) -> list[tuple[date, date]]:
    """Days one after another are reported together."""
    found: list[tuple[date, date]] = []
    for day in sorted(days):
        if found and day - found[-1][1] == timedelta(days=1):
            found[-1] = (found[-1][0], day)
        else:
            found.append((day, day))
    return found


def new_files(spark: SparkSession, root: Root, dataset: Dataset) -> DataFrame:
    """Names only: the content is not read, because nobody selects it."""
    folder = f"{root.url}/{dataset.name}"
    # Spark refuses to watch what is not there yet.
    root.folder.fs.create_dir(root.folder.path(dataset.name), recursive=True)
    files = (
        spark.readStream.format("binaryFile")
        .schema(NAMES)
        .option("maxFileAge", NEVER_TOO_OLD)
        .option("pathGlobFilter", "*-*-*.{parquet,jsonl}")
        .load(folder)
    )
    return files.select(F.lit(dataset.name).alias("dataset"), F.col("date").cast("string"))


def start(spark: SparkSession, options: argparse.Namespace, say: Say = on_stderr) -> StreamingQuery:
    root = Root.open(options.input)
    both = new_files(spark, root, ATTEMPTS).unionByName(new_files(spark, root, COUNTERS))
    checkpoint = options.checkpoint or f"{options.output.rstrip('/')}/_checkpoint"
    writer = both.writeStream.queryName("stream_delivery").option("checkpointLocation", checkpoint)
    timed = (
        writer.trigger(availableNow=True)
        if options.once
        else writer.trigger(processingTime=f"{options.every} seconds")
    )
    return timed.foreachBatch(Refresher(options, say)).start()


def more_options(parser: argparse.ArgumentParser) -> None:
    delivery_report.more_options(parser)
    add = parser.add_argument
    add("--once", action="store_true", help="report what is new, then end: for cron")
    add("--every", type=delivery_report.positive, default=60, metavar="SECONDS",
        help="look for new files so often (60)")  # fmt: skip
    add("--late-days", type=delivery_report.positive, default=None, metavar="N",
        help="leave days alone that are more than N before the newest (none is)")  # fmt: skip
    add("--checkpoint", default="", metavar="URL", help="what was seen (OUTPUT/_checkpoint)")


def main(argv: Sequence[str] | None = None) -> int:
    name = "stream_delivery"
    options = report.parse(name, __doc__ or "", argv, more_options)
    if not options.output or options.format != "parquet":
        return report.failed(name, "writes Parquet, and needs --output")
    was_running = SparkSession.getActiveSession() is not None
    spark = None
    try:
        spark = open_session(name, master=options.master, remote=options.remote)
        start(spark, options).awaitTermination()
    except (NoExport, NoJava) as error:
        return report.failed(name, str(error))
    except PySparkException as error:
        return report.failed(name, report.first_line(error))
    except KeyboardInterrupt:
        return report.failed(name, "interrupted; the next start goes on from here", code=130)
    finally:
        if spark is not None and not was_running:
            spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""From an export to DataFrames: the days that are wanted, each row once, bad files left out."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from routemaster.domain.datasets import METADATA_KEY, Dataset
from routemaster.export.files import JSONL, PARQUET
from spark_jobs.files import ExportFile, Root, Say, day_before, files_of, overlapping
from spark_jobs.schemas import schema_of

BAD_LINE = "_bad_line"


def on_stderr(message: str) -> None:
    print(message, file=sys.stderr)


@dataclass(frozen=True, slots=True)
class Export:
    """An export directory, and which days of it are wanted: both ends included, None is open."""

    spark: SparkSession
    root: str
    first_day: date | None = None
    last_day: date | None = None
    say: Say = on_stderr

    def read(self, dataset: Dataset, *, with_day_before: bool = False) -> DataFrame:
        """`with_day_before`: and the day with data before the first, from which counters grew."""
        root = Root.open(self.root)
        first_day = self.first_day
        if first_day and with_day_before:
            first_day = day_before(root, dataset, first_day)
        files = files_of(root, dataset, first_day, self.last_day, self.say)
        return read_files(self.spark, dataset, files, self.say)

    def only_wanted(self, rows: DataFrame, time: str) -> DataFrame:
        """Without what was read only because the first day needs what came before it."""
        if self.first_day is None:
            return rows
        return rows.where(F.col(time) >= F.lit(self.first_day).cast("timestamp"))


def read_files(
    spark: SparkSession, dataset: Dataset, files: list[ExportFile], say: Say = on_stderr
) -> DataFrame:
    files = without_bad_lines(spark, dataset, files, say)
    shared = overlapping(files)
    once = load(spark, dataset, [file for file in files if file not in shared])
    if not shared:
        return once
    return once.unionByName(each_once(load(spark, dataset, shared), dataset))


def each_once(rows: DataFrame, dataset: Dataset) -> DataFrame:
    has_id = any(column.name == "id" for column in dataset.columns)
    return rows.dropDuplicates(["id"] if has_id else None)


def load(spark: SparkSession, dataset: Dataset, files: Iterable[ExportFile]) -> DataFrame:
    schema = schema_of(dataset)
    paths = {
        suffix: [f.path for f in files if f.data.format == suffix] for suffix in (PARQUET, JSONL)
    }
    parts = []
    if paths[PARQUET]:
        parts.append(spark.read.schema(schema).parquet(*paths[PARQUET]))
    if paths[JSONL]:
        lines = spark.read.text(paths[JSONL]).where(~is_tag(F.col("value")))
        parts.append(lines.select(parsed(dataset)).select("row.*").drop(BAD_LINE))
    if not parts:
        return spark.createDataFrame([], schema)
    return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])


def parsed(dataset: Dataset) -> Column:
    schema = StructType([*schema_of(dataset), StructField(BAD_LINE, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": BAD_LINE}
    return F.from_json("value", schema, options).alias("row")


def is_tag(line: Column) -> Column:
    return line.startswith('{"' + METADATA_KEY + '"')


def without_bad_lines(
    spark: SparkSession, dataset: Dataset, files: list[ExportFile], say: Say
) -> list[ExportFile]:
    """One look at all JSON Lines before they are read, so that no file is read in half."""
    paths = [file.path for file in files if file.data.format == JSONL]
    if not paths:
        return files
    required = [column.name for column in dataset.columns if not column.nullable]
    wrong = F.col(f"row.{BAD_LINE}").isNotNull()
    for name in required:
        wrong = wrong | F.col(f"row.{name}").isNull()
    lines = spark.read.text(paths).select("value", F.col("_metadata.file_path").alias("path"))
    bad_lines = lines.where(~is_tag(F.col("value"))).select("path", parsed(dataset)).where(wrong)
    bad = {last_parts(row.path) for row in bad_lines.select("path").distinct().collect()}
    for file in files:
        if last_parts(file.path) in bad:
            say(f"skipped {file.key}: a line of it is not a row of {dataset.tag}")
    return [file for file in files if last_parts(file.path) not in bad]


def last_parts(path: str) -> tuple[str, ...]:
    """The day and the name: what comes before them Spark writes in its own way."""
    return tuple(unquote(path).split("/")[-2:])

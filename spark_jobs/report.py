"""The command line that all reports share: what to read, which days, where to write, in what form.

    python -m spark_jobs.delivery_report --input var/export --from 2026-03-02 --to 2026-03-08
    spark-submit spark_jobs/delivery_report.py --input s3a://bus/export --output s3a://bus/reports/d

Both days are included, and are days of UTC. Without --output the first rows are printed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, MapType, StructType

from spark_jobs import pages
from spark_jobs.files import NoExport
from spark_jobs.java import NoJava
from spark_jobs.reading import Export
from spark_jobs.session import open_session

FORMATS = ("parquet", "csv", "json", "html")
SHOWN_ROWS = 40

Build = Callable[[Export, argparse.Namespace], DataFrame]
MakePage = Callable[[Export, argparse.Namespace], str]


class BadOption(Exception):
    """What is wrong with the command line, in one sentence."""


def run(
    name: str,
    about: str,
    build: Build,
    argv: Sequence[str] | None = None,
    *,
    more_options: Callable[[argparse.ArgumentParser], None] | None = None,
    make_page: MakePage | None = None,
) -> int:
    """A report's `main`: reads, transforms, writes. Leaves a session that was running alone.

    Its page is the one of its name in `spark_jobs.pages`, unless it brings its own."""
    options = parse(name, about, argv, more_options)
    was_running = SparkSession.getActiveSession() is not None
    spark = None
    try:
        check(options)
        spark = open_session(name, master=options.master, remote=options.remote)
        export = Export(spark, options.input, options.first_day, options.last_day)
        if options.format == "html":
            page = make_page or partial(pages.page_of, name)
            print(pages.write(page(export, options), options.output))
        else:
            write(build(export, options), options)
    except (BadOption, NoExport, NoJava) as error:
        return failed(name, str(error))
    except PySparkException as error:
        return failed(name, first_line(error))
    except KeyboardInterrupt:
        return failed(name, "interrupted", code=130)
    finally:
        if spark is not None and not was_running:
            spark.stop()
    return 0


def parse(
    name: str,
    about: str,
    argv: Sequence[str] | None,
    more_options: Callable[[argparse.ArgumentParser], None] | None,
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=name, description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--input", required=True, metavar="URL", help="the directory that the bus exports to")
    add("--output", default="", metavar="URL", help="where to write; without it rows are printed")
    add("--overwrite", action="store_true", help="replace what is at --output")
    add("--from", dest="first_day", type=day, metavar="YYYY-MM-DD", help="first day, UTC")
    add("--to", dest="last_day", type=day, metavar="YYYY-MM-DD", help="last day, included")
    add("--format", choices=FORMATS, default="parquet", help="of what is written (parquet)")
    add("--master", default="", help="Spark's master, such as spark://host:7077 (local[*])")
    add("--remote", default="", help="a Spark Connect server, such as sc://host:15002")
    if more_options:
        more_options(parser)
    return parser.parse_args(argv)


def by_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by", choices=("hour", "day"), default="hour", help="the length of a period (hour)"
    )


def day(text: str) -> date:
    return date.fromisoformat(text)


def check(options: argparse.Namespace) -> None:
    if options.first_day and options.last_day and options.first_day > options.last_day:
        raise BadOption(f"--from {options.first_day} is after --to {options.last_day}")
    if options.format == "html" and not options.output:
        raise BadOption("--format html needs --output")
    if options.format == "html" and not options.overwrite and pages.exists(options.output):
        raise BadOption(f"{options.output} exists already (--overwrite replaces it)")


def write(rows: DataFrame, options: argparse.Namespace) -> None:
    if not options.output:
        plain(rows).show(SHOWN_ROWS, truncate=False)
    else:
        mode = "overwrite" if options.overwrite else "errorifexists"
        # A report is small beside what it is made from; one file is what a spreadsheet wants.
        files = rows if options.format == "parquet" else plain(rows, options.format).coalesce(1)
        writer = files.write.mode(mode).format(options.format)
        writer.option("header", "true").option("timestampFormat", TIMESTAMP).save(options.output)
        print(options.output)


TIMESTAMP = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"


def plain(rows: DataFrame, form: str = "csv") -> DataFrame:
    """For CSV and for eyes: maps, lists and structs as JSON text."""
    if form != "csv":
        return rows
    nested = (MapType, ArrayType, StructType)
    return rows.select(
        *(
            F.to_json(field.name).alias(field.name)
            if isinstance(field.dataType, nested)
            else F.col(field.name)
            for field in rows.schema
        )
    )


def first_line(error: PySparkException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if any("PATH_ALREADY_EXISTS" in line for line in lines):
        return f"{lines[0]} (--overwrite replaces it)"
    return lines[0] if lines else type(error).__name__


def failed(name: str, why: str, code: int = 1) -> int:
    print(f"{name}: {why}", file=sys.stderr)
    return code

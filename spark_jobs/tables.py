"""A report that is several tables: `--table` chooses, the first is the usual one."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame

from spark_jobs import report
from spark_jobs.reading import Export

MoreOptions = Callable[[argparse.ArgumentParser], None]


def run(
    name: str,
    about: str,
    tables: Mapping[str, report.Build],
    argv: Sequence[str] | None = None,
    more_options: MoreOptions = report.by_option,
) -> int:
    def add_options(parser: argparse.ArgumentParser) -> None:
        names = list(tables)
        parser.add_argument(
            "--table", choices=names, default=names[0], help=f"which one ({names[0]})"
        )
        more_options(parser)

    def build(export: Export, options: argparse.Namespace) -> DataFrame:
        return tables[options.table](export, options)

    return report.run(name, about, build, argv, more_options=add_options)

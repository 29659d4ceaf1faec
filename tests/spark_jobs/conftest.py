from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from routemaster.domain.datasets import Dataset
from routemaster.export.arrow import schema_of as arrow_schema
from spark_jobs.schemas import schema_of
from spark_jobs.session import QUIET, open_session
from tests.spark_jobs.rows import row

Frame = Callable[[Dataset, Iterable[dict[str, Any]]], DataFrame]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One for all tests: it takes five seconds to start. No job stops it."""
    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        "spark.driver.memory": "1g",
        # Each query runs once: the second compiler would never earn what it costs.
        "spark.driver.extraJavaOptions": f"{QUIET} -XX:TieredStopAtLevel=1",
        "spark.ui.showConsoleProgress": "false",
    }
    session = open_session("tests", master="local[2]", conf=conf)
    yield session
    session.stop()


@pytest.fixture
def frame(spark) -> Frame:
    """A dataset's DataFrame of plain rows with changes: `frame(ATTEMPTS, [{"attempt": 2}])`."""

    def make(dataset: Dataset, changes: Iterable[dict[str, Any]]) -> DataFrame:
        rows = [row(dataset, **one) for one in changes]
        # From Arrow: Spark would start Python workers to look at lists of tuples.
        table = pa.Table.from_pylist(rows, arrow_schema(dataset))
        made: DataFrame = spark.createDataFrame(table)
        return made.to(schema_of(dataset))

    return make


def pytest_collection_modifyitems(items):
    """The first of them waits for the session to start, on a busy machine half a minute."""
    for item in items:
        is_ours = "spark" in getattr(item, "fixturenames", ())
        if is_ours and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(240))

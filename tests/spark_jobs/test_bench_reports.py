"""The benchmark compares like with like: every engine counts the same deliveries."""

from __future__ import annotations

import pytest

from bench import engines
from bench.attempts import write_attempts
from bench.load import Void
from bench.reports import checked, spark_numbers

ROWS = 3_000


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("bench")
    write_attempts(str(root), ROWS)
    return str(root)


@pytest.mark.slow
@pytest.mark.parametrize("percentiles", [False, True])
def test_all_engines_count_the_same(spark, root, percentiles):
    expected = spark_numbers(root)
    assert expected[1] == ROWS
    assert engines.duckdb_delivery(root, percentiles)() == expected
    assert engines.polars_delivery(root, percentiles)() == expected


def test_engines_that_disagree_void_the_run():
    with pytest.raises(Void, match="DuckDB counts"):
        checked("DuckDB", lambda: (1, 2, 3), (1, 2, 4))()

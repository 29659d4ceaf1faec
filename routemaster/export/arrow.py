"""The datasets' columns in Arrow's types, and rows as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import pyarrow as pa

from routemaster.domain.datasets import METADATA_KEY, Dataset

KINDS = {
    "string": pa.string(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("ms", tz="UTC"),
}


@cache
def schema_of(dataset: Dataset) -> pa.Schema:
    return pa.schema(
        [pa.field(column.name, KINDS[column.kind], column.nullable) for column in dataset.columns],
        metadata={METADATA_KEY: dataset.tag},
    )


def table_of(dataset: Dataset, rows: Iterable[Sequence[object]]) -> pa.Table:
    """`rows` have the columns' order, times in milliseconds. Sorted as compacted files are."""
    columns = list(zip(*rows, strict=True)) or [()] * len(dataset.columns)
    schema = schema_of(dataset)
    arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
    return in_order(dataset, pa.Table.from_arrays(arrays, schema=schema))


def in_order(dataset: Dataset, table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in dataset.sort])

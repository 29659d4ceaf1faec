"""The export's datasets as Spark sees them."""

from __future__ import annotations

from pyspark.sql.types import (
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from routemaster.domain.datasets import Dataset

TYPES: dict[str, DataType] = {
    "string": StringType(),
    "int32": IntegerType(),
    "int64": LongType(),
    "double": DoubleType(),
    "timestamp": TimestampType(),
}


def schema_of(dataset: Dataset) -> StructType:
    return StructType(
        [StructField(col.name, TYPES[col.kind], col.nullable) for col in dataset.columns]
    )

"""What the bus exports and the reports read: the columns of each dataset, and how files are named.

    {root}/{dataset}/date=YYYY-MM-DD/{kind}-{first}-{last}.parquet      (or .jsonl)

`date` is the UTC day of the dataset's `time` column. `kind` is `part` (fresh, small, one per export
turn) or `day` (compacted). `first` and `last` say which range the file covers; they are fixed-width
and sort as text, so that the same rows always get the same name, and a file written twice after a
crash is the same file. A file whose range lies within that of another file of its partition was
compacted into it, and must be ignored: between writing a `day` file and deleting its parts both are
there. Names that begin with `.` or `_` are not data.

A file says which dataset and version it is of: in Parquet's key-value metadata under
`METADATA_KEY`, in JSON Lines in a first line `{"routemaster": "attempts/1"}`.
Times are UTC, milliseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

METADATA_KEY = "routemaster"
FILE_NAME = re.compile(r"(part|day)-([0-9A-Za-z]+)-([0-9A-Za-z]+)\.(parquet|jsonl)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Column:
    """`kind` is string, int32, int64, double or timestamp."""

    name: str
    kind: str
    meaning: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Dataset:
    name: str
    version: int
    time: str  # the column whose day is the partition
    sort: tuple[str, ...]  # the order of rows in a compacted file
    columns: tuple[Column, ...]

    @property
    def tag(self) -> str:
        return f"{self.name}/{self.version}"


def _tags(*names: str) -> tuple[Column, ...]:
    return tuple(
        Column(name, "string", f"the series' {name}, when it has one", nullable=True)
        for name in names
    )


COUNTERS = Dataset(
    "counters", 1, "taken_at", ("name", "subscriber", "topic", "taken_at"),
    (
        Column("taken_at", "timestamp", "when the snapshot was taken, by Redis' clock"),
        Column("epoch", "string", "changes when the counters began again: increases are computed"
               " within one epoch, max(value) - min(value)"),
        Column("name", "string", "such as events.published"),
        *_tags("topic", "publisher", "subscriber", "outcome", "reason"),
        Column("value", "int64", "cumulative since the epoch began"),
    ),
)  # fmt: skip

GAUGES = Dataset(
    "gauges", 1, "taken_at", ("name", "subscriber", "taken_at"),
    (
        Column("taken_at", "timestamp", "when it was measured, by Redis' clock"),
        Column("name", "string", "events.queued, batches.queued, batches.oldest_age_seconds, jobs,"
               " redis.used_bytes, redis.max_bytes, redis.high_bytes, workers"),
        *_tags("subscriber", "queue", "state"),
        Column("value", "double", "the measurement"),
    ),
)  # fmt: skip

HEALTH = Dataset(
    "health", 1, "taken_at", ("subscriber", "taken_at"),
    (
        Column("taken_at", "timestamp", "when it was looked at, by Redis' clock"),
        Column("subscriber", "string", "its name"),
        Column("state", "string", "active, paused or disabled"),
        Column("health_points", "int32", "0 to 100"),
        Column("consecutive_failures", "int32", "failed attempts since the last success"),
    ),
)  # fmt: skip

ATTEMPTS = Dataset(
    "attempts", 1, "finished_at", ("subscriber", "started_at"),
    (
        Column("id", "string", "unique: the same attempt exported twice has the same id"),
        Column("subscriber", "string", "whom it was for"),
        Column("lane", "string", "its ordered queue"),
        Column("batch", "string", "the batch id, the same in every attempt"),
        Column("attempt", "int32", "1, 2, 3, ...; waiting because of a 429 is not an attempt, and"
               " the next try has the same number"),
        Column("events", "int32", "events in the batch"),
        Column("bytes", "int64", "length of the body sent"),
        Column("first_seq", "int64", "number of the first event in its lane"),
        Column("created_at", "timestamp", "when the batch's first event was accepted"),
        Column("started_at", "timestamp", "when the request began"),
        Column("finished_at", "timestamp", "when it ended"),
        Column("took_ms", "int64", "finished_at - started_at"),
        Column("age_ms", "int64", "finished_at - created_at"),
        Column("outcome", "string", "delivered, failed, throttled or gone (410)"),
        Column("http_status", "int32", "0 when there was no answer"),
        Column("error", "string", "'', dns, refused, reset, timeout, tls, redirect, http_500, ..."),
        Column("worker", "string", "who sent it"),
    ),
)  # fmt: skip

DROPS = Dataset(
    "drops", 1, "dropped_at", ("subscriber", "dropped_at"),
    (
        Column("id", "string", "unique, as in attempts"),
        Column("subscriber", "string", "whose events they were"),
        Column("lane", "string", "its ordered queue"),
        Column("batch", "string", "the batch that was given up"),
        Column("events", "int32", "how many events it held"),
        Column("first_seq", "int64", "number of its first event in the lane"),
        Column("last_seq", "int64", "and of its last"),
        Column("created_at", "timestamp", "when the batch's first event was accepted"),
        Column("dropped_at", "timestamp", "when it was given up"),
        Column("reason", "string", "memory or operator"),
    ),
)  # fmt: skip

PUBLISHES = Dataset(
    "publishes", 1, "minute", ("topic", "minute"),
    (
        Column("minute", "timestamp", "the minute, by Redis' clock"),
        Column("topic", "string", "its name"),
        Column("publisher", "string", "its owner; '' when it has none"),
        Column("events", "int64", "events accepted in that minute"),
        Column("bytes", "int64", "their size as JSON"),
        Column("fanout", "int64", "events added to lanes: events times subscribers"),
    ),
)  # fmt: skip

DATASETS = {
    dataset.name: dataset
    for dataset in (COUNTERS, GAUGES, HEALTH, ATTEMPTS, DROPS, PUBLISHES)
}  # fmt: skip

"""What the crash tests fill, break off and look at."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from routemaster.bus import Bus
from routemaster.domain.attempt import Attempt
from routemaster.domain.datasets import DATASETS, Dataset
from routemaster.export.files import listing, read_all
from routemaster.export.folder import Folder
from tests.busses import follow
from tests.lua.calls import accepted

DAY_MS = 86_400_000
MIDNIGHT_MS = 1_763_424_000_000  # 2025-11-18


def tried(bus: Bus, count: int, first: int = 0, days: int = 1) -> None:
    """Rows of the attempts stream, as queue_ack writes them; over several days."""
    for number in range(first, first + count):
        at_ms = MIDNIGHT_MS + number * days // (first + count) * DAY_MS + number
        row = Attempt("0", f"b{number}", 1, 2, 30, at_ms - 50, at_ms - 9, at_ms, "delivered", 200)
        bus.link.call("XADD", bus.keys.attempts, "*", "a", row.stream_row(f"s{number % 3}"))


def dropped(bus: Bus, count: int) -> None:
    follow(bus, "dropper", "a", max=1)
    table = bus.directory.fresh()
    bus.events.publish(table, table.topics["a"], accepted(range(count)))
    bus.lanes.drop("dropper", "0", count, "memory")


def published(bus: Bus, minutes: int) -> None:
    for number in range(minutes):
        bus.link.call("HSET", bus.keys.publishes, f"{29_390_400 + number}|t|p", "1 2 3")


def table(folder: Folder, dataset: Dataset) -> pa.Table:
    return read_all(folder, dataset, listing(folder, dataset).files)


def rows(folder: Folder, name: str) -> list[dict[str, Any]]:
    return list(table(folder, DATASETS[name]).to_pylist())


def batches(folder: Folder) -> Counter[str]:
    return Counter(row["batch"] for row in rows(folder, "attempts"))


def once(count: int) -> Counter[str]:
    return Counter(f"b{number}" for number in range(count))

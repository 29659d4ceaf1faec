"""The charts of the whole bus, and those of one subscriber."""

from __future__ import annotations

from collections.abc import Sequence

from routemaster.store.series import Minute
from routemaster.web.dashboard import formats
from routemaster.web.dashboard.charts import Chart, Frame, Value, chart, ratios

# Places of the gauges in a row.
QUEUED, WAITS_S = 0, 1
WORKERS, USED_BYTES, DUE = 2, 3, 4
HEALTH = 2
MIB = 1024**2


def of_bus(frame: Frame, rows: Sequence[Minute]) -> list[Chart]:
    return [flow(frame, rows), latency(frame, rows), waiting(frame, rows), memory(frame, rows)]


def of_subscriber(frame: Frame, rows: Sequence[Minute]) -> list[Chart]:
    return [flow(frame, rows), latency(frame, rows), waiting(frame, rows), health(frame, rows)]


def flow(frame: Frame, rows: Sequence[Minute]) -> Chart:
    return chart(
        "flow", "Events per second", frame,
        [
            ("in", "a", frame.rates(rows, lambda row: row.flow.added)),
            ("out", "b", frame.rates(rows, lambda row: row.flow.delivered)),
        ],
        formats.rate, least=1,
    )  # fmt: skip


def latency(frame: Frame, rows: Sequence[Minute]) -> Chart:
    took = frame.sums(rows, lambda row: row.flow.latency_ms)
    batches = frame.sums(rows, lambda row: row.flow.succeeded)
    lines = [("mean, first event to acknowledgement", "c", ratios(took, batches))]
    return chart("latency", "Latency", frame, lines, formats.duration, least=100)


def waiting(frame: Frame, rows: Sequence[Minute]) -> Chart:
    lines = [("events", "d", frame.highest(rows, QUEUED))]
    return chart("waiting", "Waiting", frame, lines, formats.count, least=4)


def memory(frame: Frame, rows: Sequence[Minute]) -> Chart:
    lines = [("used by Redis", "e", frame.highest(rows, USED_BYTES))]
    return chart("memory", "Memory", frame, lines, formats.size, least=4 * MIB, base=1024)


def health(frame: Frame, rows: Sequence[Minute]) -> Chart:
    points: list[Value] = frame.highest(rows, HEALTH)
    failed = frame.rates(rows, lambda row: 60 * row.flow.failed)
    lines = [("health points", "b", points), ("failed deliveries a minute", "f", failed)]
    return chart("health", "Health", frame, lines, formats.count, least=100)

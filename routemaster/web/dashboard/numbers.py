"""The figures at the head of a page: rates of these seconds, means over the last minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from routemaster.metrics.traffic import Moment
from routemaster.store.series import MINUTE_MS, Flow, Minute
from routemaster.web.dashboard.live import Pace

RECENT_MINUTES = 15


@dataclass(frozen=True, slots=True)
class Numbers:
    in_per_s: float | None
    out_per_s: float | None
    failed_per_min: float | None
    latency_ms: float | None
    success: float | None  # of deliveries; None when none was tried
    queued: int
    waits_s: int


def numbers_of(
    now: Moment, names: Sequence[str], pace: Pace, rows: Sequence[Minute], is_whole: bool
) -> Numbers:
    """Of some subscribers, or of the whole bus. `rows` are their series."""
    recent, minutes = lately(rows, now.now_ms)
    both = plus(recent, pace.flow)
    added = pace.published if is_whole else pace.flow.added
    if pace.seconds:
        in_per_s, out_per_s = pace.per_s(added), pace.per_s(pace.flow.delivered)
    else:
        in_per_s, out_per_s = (
            ratio(recent.added, 60 * minutes), ratio(recent.delivered, 60 * minutes),
        )  # fmt: skip
    return Numbers(
        in_per_s=in_per_s,
        out_per_s=out_per_s,
        failed_per_min=ratio(both.failed, minutes + pace.seconds / 60),
        latency_ms=ratio(pace.flow.latency_ms, pace.flow.succeeded) or ratio(
            recent.latency_ms, recent.succeeded
        ),
        success=ratio(both.succeeded, both.succeeded + both.failed),
        queued=now.queued(names),
        waits_s=now.waits_s(names),
    )  # fmt: skip


def lately(rows: Sequence[Minute], now_ms: int) -> tuple[Flow, int]:
    """What the last minutes brought, and how many of them there are rows for."""
    since = now_ms // MINUTE_MS - RECENT_MINUTES
    total, minutes = Flow(), 0
    for row in rows:
        if row.minute > since:
            total, minutes = plus(total, row.flow), minutes + row.span
    return total, minutes


def plus(a: Flow, b: Flow) -> Flow:
    return Flow(*(x + y for x, y in zip(a.as_list(), b.as_list(), strict=True)))


def ratio(above: float, below: float) -> float | None:
    return above / below if below else None

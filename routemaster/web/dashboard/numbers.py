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
    now: Moment,
    names: Sequence[str],
    pace: Pace,
    rows: Sequence[Minute],
    is_whole: bool,
    last: Flow | None = None,
) -> Numbers:
    """Of one subscriber, or of the whole bus. `rows` are its series, `last` the totals at the end
    of that; what came since is only guessed at without them."""
    recent, minutes = lately(rows, now.now_ms)
    both = plus(recent, since(now, names, last) if last else pace.flow)
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
            both.latency_ms, both.succeeded
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


def since(now: Moment, names: Sequence[str], last: Flow) -> Flow:
    rise = Flow()
    for name in [name for name in names if name in now.subscribers]:
        pairs = zip(now.subscribers[name].totals.as_list(), last.as_list(), strict=True)
        rise = plus(rise, Flow(*(max(0, new - old) for new, old in pairs)))
    return rise


def plus(a: Flow, b: Flow) -> Flow:
    return Flow(*(x + y for x, y in zip(a.as_list(), b.as_list(), strict=True)))


def ratio(above: float, below: float) -> float | None:
    return above / below if below else None

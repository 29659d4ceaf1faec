"""What goes wrong, when and with whom: a plan that is the same for every seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from routemaster.demo.cast import Subscriber, Topic

MINUTE_MS, HOUR_MS, DAY_MS = 60_000, 3_600_000, 86_400_000
# Ends that lie beyond the data's.
FOR_EVER_H = 24.0 * 10_000


@dataclass(slots=True)
class Incident:
    """`detail` is what it was made with, `numbers` what came of it."""

    kind: str
    from_ms: int
    to_ms: int
    subscriber: str = ""
    topic: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)

    def covers(self, now_ms: int) -> bool:
        return self.from_ms <= now_ms < self.to_ms


# Who (its number), how many days before the end, from and to in hours of that day, and with what.
# Most lie in the last days: a deviation shows only beside what was usual before it.
SUBSCRIBERS: tuple[tuple[str, int, int, float, float, dict[str, Any]], ...] = (
    ("outage", 0, 3, 3 + 10 / 60, 4 + 25 / 60, {"error": "http_503"}),
    ("slow", 2, 4, 8, 14, {"times": 20.0}),
    ("dead", 3, 9, 16 + 20 / 60, FOR_EVER_H, {"error": "dns"}),
    ("flapping", 5, 6, 8, 20, {"down_minutes": 4, "every_minutes": 10, "error": "reset"}),
    ("outage", 7, 9, 14, 14 + 40 / 60, {"error": "refused"}),
    ("throttled", 9, 6, 10, 16, {"share": 0.5, "retry_after_s": 30}),
    ("paused", 11, 7, 13, 15, {}),
    ("gone", 16, 4, 10 + 5 / 60, FOR_EVER_H, {}),
    ("outage", 21, 5, 22.5, 25.5, {"error": "timeout"}),
    ("outage", 40, 2, 9.25, 11.75, {"error": "http_500"}),
    ("flapping", 60, 4, 12, 18, {"down_minutes": 4, "every_minutes": 9, "error": "http_502"}),
    ("slow", 67, 10, 0, 24, {"times": 8.0}),
    ("throttled", 80, 3, 9, 12, {"share": 0.7, "retry_after_s": 60}),
    ("dead", 106, 5, 7.5, FOR_EVER_H, {"error": "refused"}),
)
TOPICS: tuple[tuple[str, int, int, float, float, dict[str, Any]], ...] = (
    ("spike", 2, 2, 11, 13, {"times": 6.0}),
    ("silence", 4, 1, 9, 15, {"times": 0.0}),
    ("spike", 7, 5, 2, 3, {"times": 12.0}),
)
EPOCH_DAYS, EPOCH_HOUR = 6, 4.5


def planned(
    topics: list[Topic], subscribers: list[Subscriber], first_ms: int, end_ms: int
) -> list[Incident]:
    """Those whose day and whose player there are, in order of time."""
    found = []
    for kind, number, days, from_h, to_h, detail in SUBSCRIBERS:
        if number < len(subscribers):
            name = subscribers[number].name
            found.append(_incident(kind, days, from_h, to_h, end_ms, detail, subscriber=name))
    for kind, number, days, from_h, to_h, detail in TOPICS:
        if number < len(topics):
            name = topics[number].name
            found.append(_incident(kind, days, from_h, to_h, end_ms, detail, topic=name))
    found.append(_incident("counter_epoch", EPOCH_DAYS, EPOCH_HOUR, EPOCH_HOUR, end_ms, {}))
    # Not on the first day of all: before something goes wrong it has to be seen going well.
    there = [one for one in found if one.from_ms >= first_ms + HOUR_MS]
    return sorted(there, key=lambda one: (one.from_ms, one.kind, one.subscriber, one.topic))


def _incident(
    kind: str, days: int, from_h: float, to_h: float, end_ms: int, detail: dict[str, Any],
    subscriber: str = "", topic: str = "",
) -> Incident:  # fmt: skip
    midnight_ms = end_ms - days * DAY_MS
    from_ms, to_ms = (midnight_ms + round(hours * HOUR_MS) for hours in (from_h, to_h))
    return Incident(kind, from_ms, min(to_ms, end_ms), subscriber, topic, dict(detail))

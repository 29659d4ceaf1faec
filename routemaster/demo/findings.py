"""What came of each incident, in numbers that a report can be held against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from routemaster.demo.history import History, numbers
from routemaster.demo.incidents import DAY_MS, Incident
from routemaster.demo.subscriber import DELIVERED

if TYPE_CHECKING:
    from routemaster.demo.simulate import Played


def number_incidents(played: Played) -> None:
    """Fills in `numbers`, and adds the losses: they are a consequence, not planned."""
    for incident in played.incidents:
        if incident.subscriber:
            one = played.histories[incident.subscriber]
            incident.numbers = _of_subscriber(incident, one, played)
        elif incident.topic:
            incident.numbers = _of_topic(incident, played)
        else:
            times = (incident.from_ms - 1, incident.from_ms)
            incident.numbers = {"epochs": [played.moments.epoch(now_ms) for now_ms in times]}
    played.incidents += [
        lost for name, one in played.histories.items() if (lost := _losses(name, one))
    ]
    played.incidents.sort(key=lambda one: one.from_ms)


def _of_subscriber(incident: Incident, one: History, played: Played) -> dict[str, Any]:
    started, finished = (numbers(one.attempts, name) for name in ("started_at", "finished_at"))
    outcomes = np.asarray(one.attempts.column("outcome").to_pylist(), dtype=object)
    within = (started >= incident.from_ms) & (started < incident.to_ms)
    found: dict[str, Any] = {
        outcome: int((within & (outcomes == outcome)).sum())
        for outcome in ("delivered", "failed", "throttled", "gone")
    }
    wrong = started[within & (outcomes != DELIVERED)]
    if len(wrong):
        found["first_failure_ms"], found["last_failure_ms"] = int(wrong[0]), int(wrong[-1])
    right = finished[(outcomes == DELIVERED) & (started >= incident.to_ms)]
    found["recovered_ms"] = int(right.min()) if len(right) else None
    times = played.moments.times
    during = (times >= incident.from_ms) & (times <= (found["recovered_ms"] or times[-1]))
    # At the snapshots: what a report can know.
    found["most_events_waiting"] = int(one.events_queued[during].max()) if during.any() else 0
    return found


def _of_topic(incident: Incident, played: Played) -> dict[str, Any]:
    """Beside the same hours of the days before."""
    number = next(n for n, topic in enumerate(played.topics) if topic.name == incident.topic)
    published = played.published[number]

    def events(days_before: int) -> int:
        shift_ms = days_before * DAY_MS
        from_ms, to_ms = incident.from_ms - shift_ms, incident.to_ms - shift_ms
        within = (published.at_ms >= from_ms) & (published.at_ms < to_ms)
        return int(published.events[within].sum())

    days = int((incident.from_ms - played.moments.first_ms) // DAY_MS)
    usual = float(np.median([events(day + 1) for day in range(days)])) if days else None
    return {"events": events(0), "usual_events": usual}


def _losses(name: str, one: History) -> Incident | None:
    if not len(one.drops):
        return None
    dropped, events = numbers(one.drops, "dropped_at"), numbers(one.drops, "events")
    return Incident(
        "autodrop", int(dropped.min()), int(dropped.max()) + 1, name,
        numbers={
            "events": int(events.sum()),
            "batches": len(events),
            "first_seq": int(numbers(one.drops, "first_seq").min()),
            "last_seq": int(numbers(one.drops, "last_seq").max()),
        },
    )  # fmt: skip

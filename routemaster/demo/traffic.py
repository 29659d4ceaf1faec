"""What is published: bursts of events in each topic, busier by day and on working days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from routemaster.demo.cast import Subscriber, Topic
from routemaster.demo.incidents import DAY_MS, HOUR_MS, MINUTE_MS, Incident

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
QUIET_NIGHT, WEEKEND = 0.3, 0.7


@dataclass(frozen=True, slots=True)
class Bursts:
    """Publishes of one topic, or what they brought one lane, in order of time."""

    at_ms: Ints
    events: Ints
    data_bytes: Ints


def bursts(
    topic: Topic, incidents: Sequence[Incident], first_ms: int, end_ms: int, seed: Sequence[int]
) -> Bursts:
    dice = np.random.default_rng(seed)
    minutes = np.arange(first_ms, end_ms, MINUTE_MS, dtype=np.int64)
    rate = 60.0 / topic.every_s * rhythm(minutes, topic.peak_hour)
    for incident in incidents:
        if incident.topic == topic.name:
            rate[(minutes >= incident.from_ms) & (minutes < incident.to_ms)] *= incident.detail[
                "times"
            ]
    at_ms = np.repeat(minutes, dice.poisson(rate))
    at_ms = np.sort(at_ms + dice.integers(0, MINUTE_MS, len(at_ms)))
    # Bursts of like size: with a few huge ones every hour would be an anomaly.
    events = 1 + dice.poisson(dice.gamma(6.0, (topic.events - 1) / 6.0, len(at_ms)))
    return Bursts(at_ms, events.astype(np.int64), events.astype(np.int64) * topic.event_bytes)


def rhythm(at_ms: Ints, peak_hour: float) -> Floats:
    """1 at the peak of a working day."""
    hours = (at_ms % DAY_MS) / HOUR_MS
    day = np.exp(-0.5 * (((hours - peak_hour + 12) % 24 - 12) / 4.5) ** 2)
    weekday = (at_ms // DAY_MS + 3) % 7  # 1970 began on a Thursday
    return (QUIET_NIGHT + (1 - QUIET_NIGHT) * day) * np.where(weekday >= 5, WEEKEND, 1.0)


def lanes_of(subscriber: Subscriber, published: Sequence[Bursts], seed: int) -> list[Bursts]:
    """What each of its lanes gets. A burst is about one thing, and goes to one lane as a whole."""
    mine = [published[topic] for topic in subscriber.topics]
    at_ms = np.concatenate([one.at_ms for one in mine])
    events = np.concatenate([one.events for one in mine])
    sizes = np.concatenate([one.data_bytes for one in mine])
    order = np.argsort(at_ms, kind="stable")
    dice = np.random.default_rng([seed, 4, subscriber.number])
    lane = dice.integers(0, len(subscriber.lanes), len(at_ms))[order]
    return [
        Bursts(at_ms[order][lane == n], events[order][lane == n], sizes[order][lane == n])
        for n in range(len(subscriber.lanes))
    ]

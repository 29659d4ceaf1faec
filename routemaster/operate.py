"""What operators do to a subscriber's backlog: count it, deliver it now, give it up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from routemaster.bus import Bus
from routemaster.errors import NotFound
from routemaster.subscribe import no_subscription, set_state

DROP_REASON = "operator"
# In one script, so that a long lane does not hold Redis up.
DROP_BATCHES = 500


@dataclass(frozen=True, slots=True)
class Backlog:
    name: str
    state: str
    callback: str
    lanes: int
    batches: int
    events: int


def backlog(bus: Bus, name: str) -> Backlog:
    """Raises NotFound."""
    summaries = bus.subscribers.summaries([name])
    if not summaries:
        raise no_subscription(name)
    (one,) = summaries
    lanes = len(bus.lanes.holding_lanes(name))
    return Backlog(name, one.state, one.callback, lanes, one.batches, one.queued)


def lanes_of(bus: Bus, name: str, lane: str | None) -> list[str]:
    """Those that hold batches; just the one that was asked for, or NotFound."""
    found = [held.name for held in bus.lanes.holding_lanes(name)]
    if lane is None:
        return found
    if lane not in found:
        raise NotFound(f"{name} has nothing queued in lane {lane!r}")
    return [lane]


def replay(bus: Bus, name: str, lane: str | None = None) -> Iterator[str]:
    """Every lane is due now, also the quarantined and those that wait after a failure; a paused or
    disabled subscriber is active again. Yields the lanes as they are done."""
    lanes = lanes_of(bus, name, lane)
    set_state(bus, name, "active")
    for each in lanes:
        bus.operations.hasten(name, each)
        yield each


def drop(bus: Bus, name: str, lane: str | None = None) -> Iterator[int]:
    """Gives up all batches but those that are being delivered; each is recorded with its numbers.
    Yields how many events are gone, step by step."""
    for each in lanes_of(bus, name, lane):
        while True:
            batches, events = bus.lanes.drop(name, each, DROP_BATCHES, DROP_REASON)
            if events:
                yield events
            if batches < DROP_BATCHES:
                break

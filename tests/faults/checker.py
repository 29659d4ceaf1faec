"""What must hold of every history, whatever was done to the bus: a pure function."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.faults.history import FAILED, NEVER, OK, Fault, History, Life, Publish, Request

SHOWN = 20


@dataclass(frozen=True)
class Bounds:
    lease_s: float
    deadline_s: float
    # What a busy machine may add to any of these.
    margin_s: float = 3.0

    @property
    def recovery_s(self) -> float:
        return self.lease_s + 1 + self.margin_s


def problems(history: History, bounds: Bounds) -> list[str]:
    found: list[str] = []
    # What was not answered may take effect at any later time.
    sure = {e for publish in history.publishes if publish.result == OK for e in publish.events}
    for life in history.lives:
        requests = sorted(
            (r for r in history.requests if r.life == life.name), key=lambda r: r.arrived
        )
        found += foreign(life, requests, history.publishes, bounds)
        found += identities(life, requests)
        for lane, own in sorted(by_lane(requests).items()):
            found += [f"{life.name} lane {lane}: {text}" for text in lane_problems(own, sure)]
            found += repeats(f"{life.name} lane {lane}", own, history.faults, bounds)
        if life.left == NEVER:
            found += losses(life, requests, history.publishes)
            found += recoveries(life, requests, history, bounds)
    found += halves(history)
    return found


def by_lane(requests: list[Request]) -> dict[str, list[Request]]:
    lanes: dict[str, list[Request]] = defaultdict(list)
    for request in requests:
        lanes[request.lane].append(request)
    return lanes


def foreign(
    life: Life, requests: list[Request], publishes: list[Publish], bounds: Bounds
) -> Iterator[str]:
    """What this subscriber should never have been sent."""
    published = {event: publish for publish in publishes for event in publish.events}
    for request in requests:
        # A request that was under way when it left may still arrive.
        if request.arrived > life.left + bounds.deadline_s:
            yield f"{life.name}: {request.bid} arrived after it had unsubscribed"
        for event in request.events:
            publish = published.get(event)
            if publish is None:
                yield f"{life.name}: {event} was never published"
            elif publish.topic not in life.topics:
                yield f"{life.name}: {event} is of a topic it does not follow"
            elif publish.result == FAILED:
                yield f"{life.name}: {event} was refused, and delivered"
            elif publish.ended < life.subscribing:
                yield f"{life.name}: {event} is from before it subscribed"
            elif publish.began > life.left:
                yield f"{life.name}: {event} is from after it left"


def identities(life: Life, requests: list[Request]) -> Iterator[str]:
    """A batch id is one batch, and an event is in one batch."""
    batches: dict[str, Request] = {}
    homes: dict[str, str] = {}
    for request in requests:
        known = batches.setdefault(request.bid, request)
        if (known.events, known.first, known.lane) != (request.events, request.first, request.lane):
            yield f"{life.name}: {request.bid} came with other contents"
        if len(request.events) != request.last - request.first + 1:
            yield f"{life.name}: {request.bid} has other events than its numbers say"
        for event in request.events:
            if homes.setdefault(event, request.bid) != request.bid:
                yield f"{life.name}: {event} came in {homes[event]} and in {request.bid}"


def lane_problems(requests: list[Request], sure: set[str]) -> Iterator[str]:
    """Numbers without a gap, each batch only after the one before it, and what was acknowledged
    to a publisher in its order."""
    expected, done, told = 1, set[str](), set[int]()
    newest: dict[str, int] = {}
    answered: dict[str, float] = {}
    last_bid = ""
    for request in requests:
        told |= {n for first, last in request.dropped for n in range(first, last + 1)}
        while expected in told and expected < request.first:
            expected += 1
        if request.bid in done:
            continue
        if request.first > expected:
            yield f"{request.bid} begins at {request.first}, but {expected} was never acknowledged"
        elif request.first < expected:
            yield f"{request.bid} begins at {request.first}, again after {expected - 1}"
        elif last_bid and request.arrived < answered[last_bid]:
            yield f"{request.bid} arrived before {last_bid} was answered"
        if request.is_acknowledged:
            yield from out_of_order(request, newest, sure)
            done.add(request.bid)
            answered[request.bid] = request.answered
            last_bid, expected = request.bid, request.last + 1


def out_of_order(request: Request, newest: dict[str, int], sure: set[str]) -> Iterator[str]:
    for event in (event for event in request.events if event in sure):
        publisher, _, number = event.partition("/")
        if int(number) <= newest.get(publisher, -1):
            yield f"{event} came after {publisher}/{newest[publisher]}"
        newest[publisher] = int(number)


def repeats(
    where: str, requests: list[Request], faults: list[Fault], bounds: Bounds
) -> Iterator[str]:
    """What was acknowledged comes again only around a fault, and not more often than there are.
    Who answers that with an error gets it once more."""
    done: dict[str, bool] = {}
    again = 0
    reach_s = bounds.recovery_s + bounds.deadline_s
    for request in requests:
        if done.get(request.bid):
            again += 1
            if not any(
                fault.may_repeat and fault.began <= request.arrived <= fault.ended + reach_s
                for fault in faults
            ):
                yield f"{where}: {request.bid} came again without a fault"
        done[request.bid] = request.is_acknowledged
    most = sum(fault.may_repeat for fault in faults)
    if again > most:
        yield f"{where}: {again} batches came again, in {most} faults"


def losses(life: Life, requests: list[Request], publishes: list[Publish]) -> Iterator[str]:
    got = {event for request in requests if request.is_acknowledged for event in request.events}
    dropped = sum(
        last - first + 1 for first, last in {r for request in requests for r in request.dropped}
    )
    missing = [
        event
        for publish in publishes
        if publish.result == OK and publish.topic in life.topics and publish.began > life.subscribed
        for event in publish.events
        if event not in got
    ]
    if len(missing) > dropped:
        yield f"{life.name}: {len(missing)} acknowledged events lost: {missing[:SHOWN]}"


def halves(history: History) -> Iterator[str]:
    """An event is for all subscribers of its topic or for none, whatever its publisher was told."""
    stable = [life for life in history.lives if life.left == NEVER]
    got = {
        life.name: {e for r in history.requests if r.life == life.name for e in r.events}
        for life in stable
    }
    if any(request.dropped for request in history.requests):
        return  # what was given up is not in the history
    for publish in history.publishes:
        lives = [
            life for life in stable
            if publish.topic in life.topics and life.subscribed < publish.began
        ]  # fmt: skip
        counts = Counter(event in got[life.name] for life in lives for event in publish.events)
        if len(counts) == 2:
            yield f"{publish.events} ({publish.result}) reached some and not others: {dict(counts)}"


def recoveries(
    life: Life, requests: list[Request], history: History, bounds: Bounds
) -> Iterator[str]:
    """After the end of a fault something arrives again, while there is something to deliver."""
    last_publish = max((p.began for p in history.publishes if p.result == OK), default=-math.inf)
    arrivals = [request.arrived for request in requests]
    for fault in history.faults:
        until = fault.ended + bounds.recovery_s
        overlapped = any(
            other is not fault and other.ended > fault.ended and other.began < until
            for other in history.faults
        )
        if until > last_publish or overlapped or life.subscribed > fault.began:
            continue
        if not any(fault.ended <= at <= until for at in arrivals):
            yield f"{life.name}: nothing arrived within {bounds.recovery_s} s of {fault.kind}"

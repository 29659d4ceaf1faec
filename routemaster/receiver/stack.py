"""Small pieces between the receiver and your function, composed by calling one with the next:

    on_batch = latest_by_url(ignore_stale(siphon({"prices": price_changed}, handle)))

Each passes a batch on with fewer events, or with none left not at all.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping

from routemaster.receiver.batch import Batch, Event, Handler

MOST_URLS = 100_000


def latest_by_url(next: Handler) -> Handler:
    """Of several events about one URL in a batch only the latest, where it stands."""

    def handle(batch: Batch) -> None:
        latest: dict[str, Event] = {}
        for event in batch.events:
            known = latest.get(event["url"])
            if known is None or event["t"] >= known["t"]:
                latest.pop(event["url"], None)
                latest[event["url"]] = event
        pass_on(batch, list(latest.values()), next)

    return handle


def ignore_stale(next: Handler, most_urls: int = MOST_URLS) -> Handler:
    """Skips events older than one about the same URL that was processed before. Of those URLs as
    many are remembered, in this process; an event of the same time is not stale, because it may be
    the same one again after a failure."""
    known: OrderedDict[str, int] = OrderedDict()
    lock = threading.Lock()

    def handle(batch: Batch) -> None:
        with lock:
            fresh = [event for event in batch.events if event["t"] >= known.get(event["url"], 0)]
        pass_on(batch, fresh, next)
        # Only now: what failed must not make its own repetition stale.
        with lock:
            for event in fresh:
                known[event["url"]] = max(event["t"], known.get(event["url"], 0))
                known.move_to_end(event["url"])
            while len(known) > most_urls:
                known.popitem(last=False)

    return handle


def siphon(handlers: Mapping[str, Callable[[Event], object]], next: Handler) -> Handler:
    """Events of these topics go to functions of their own; the rest goes on."""

    def handle(batch: Batch) -> None:
        rest = []
        for event in batch.events:
            side = handlers.get(event["topic"])
            if side is None:
                rest.append(event)
            else:
                side(event)
        pass_on(batch, rest, next)

    return handle


def pass_on(batch: Batch, events: list[Event], next: Handler) -> None:
    if events:
        next(batch.holding(events))

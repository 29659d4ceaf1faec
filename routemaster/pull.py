"""A subscriber without callback takes its batches itself, and says what became of them."""

from __future__ import annotations

import hashlib
import random

from routemaster.bus import Bus
from routemaster.domain.attempt import DELIVERED
from routemaster.domain.backoff import delay_ms
from routemaster.domain.health import DAMAGE, REWARD
from routemaster.errors import Conflict, StoreUnavailable
from routemaster.store.operations import SUCCESS
from routemaster.store.pulls import Held, Pull, Pulled
from routemaster.subscribe import no_subscription

REFUSED = "pull_refused"


def lease_id_of(key: str) -> str:
    """A client's key for what it takes: the same key gives the same batch, while it is leased."""
    return "k" + hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


def take(
    bus: Bus, name: str, lease_id: str, lease_ms: int, *, repeated: bool = False
) -> Pulled | None:
    """None when there is nothing to take now."""
    bus.pulls.promote()
    while True:
        found = taken(bus, name, lease_id, lease_ms, repeated)
        if found.how is Pull.GONE:
            raise no_subscription(name)
        if found.how is Pull.PUSHED:
            raise Conflict(f"{name} has a callback: its batches are pushed to it")
        if found.lease is None or found.lease.batch is not None:
            return found if found.lease else None
        # Its batch vanished from Redis: acknowledged away, as a worker does.
        bus.main.ack(found.lease.job, found.lease.fence, found.lease.bid)


def taken(bus: Bus, name: str, lease_id: str, lease_ms: int, repeated: bool) -> Pulled:
    try:
        return bus.pulls.take(name, lease_id, lease_ms, repeated=repeated)
    except StoreUnavailable as error:
        if error.reason.startswith("error:"):
            raise
        # It may have been taken, and only the reply lost: by its id the same comes again.
        return bus.pulls.take(name, lease_id, lease_ms, repeated=True)


def acknowledge(bus: Bus, name: str, bid: str, fence: str) -> None:
    held = bus.pulls.held(name, bid)
    if held is None:
        # An answer that was lost: it is done, whoever asks again.
        done = bus.operations.find(bid, [name], bus.clock.now_ms())
        if done and done.subscriber == name and done.status == SUCCESS:
            return
        raise lease_lost(bid)
    attempt = matching(held, fence).attempt(DELIVERED)
    if not bus.main.ack(held.job, held.fence, bid, health=REWARD, attempt=attempt):
        raise lease_lost(bid)


def refuse(bus: Bus, name: str, bid: str, fence: str, wait_ms: int | None) -> None:
    """Without a time to wait it is that of a failed delivery."""
    held = matching(bus.pulls.held(name, bid), fence, bid)
    attempt = held.attempt("failed", REFUSED)
    if wait_ms is None:
        wait_ms = usual_wait_ms(bus, name, held)
    if not bus.main.nack(held.job, held.fence, wait_ms, damage=DAMAGE, attempt=attempt):
        raise lease_lost(bid)


def renew(bus: Bus, name: str, bid: str, fence: str, lease_ms: int) -> int:
    """Returns when the lease ends now."""
    held = matching(bus.pulls.held(name, bid), fence, bid)
    if not bus.main.renew(held.job, held.fence, lease_ms):
        raise lease_lost(bid)
    return bus.pulls.until_ms(held.job)


def usual_wait_ms(bus: Bus, name: str, held: Held) -> int:
    summaries = bus.subscribers.summaries([name])
    health = summaries[0].health_points if summaries else 0
    failures = held.batch.attempts + 1
    dice = random.Random()
    return delay_ms(max(0, health - DAMAGE), failures, bus.settings.max_backoff_ms, dice)


def matching(held: Held | None, fence: str, bid: str = "") -> Held:
    """Who says which lease it has is held to it: it may be another's by now."""
    if held is None or (fence and fence != held.fence):
        raise lease_lost(held.batch.bid if held else bid)
    return held


def lease_lost(bid: str) -> Conflict:
    return Conflict(f"you have no lease of {bid}: it ran out, or was ended before")

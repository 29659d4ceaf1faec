"""Sends by a real courier, and waits for what comes back."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import closing, contextmanager
from ipaddress import ip_network

from routemaster.clock import SystemClock
from routemaster.delivery.courier import Courier, CourierRules
from routemaster.delivery.message import Message
from routemaster.delivery.outcome import Outcome, Response, judge

LOOPBACK = (ip_network("127.0.0.0/8"),)
# Nothing here takes this long: it ends a test that would hang.
PATIENCE_S = 30.0
HEADERS = ("Content-Type: application/json", "User-Agent: tests", "Expect:")


def rules(timeout_s: float = PATIENCE_S, **changes) -> CourierRules:
    given = {
        "timeout_s": timeout_s,
        "connect_timeout_s": timeout_s,
        "ssl_verify": True,
        "allowed_networks": LOOPBACK,
    }
    return CourierRules(**{**given, **changes})


@contextmanager
def courier(timeout_s: float = PATIENCE_S, **changes) -> Iterator[Courier]:
    with closing(Courier(rules(timeout_s, **changes), SystemClock())) as made:
        yield made


def message(url: str, body: bytes = b"[]") -> Message:
    return Message(url, HEADERS, body)


def collect(courier: Courier, count: int = 1) -> list[tuple[Hashable, Response]]:
    ended: list[tuple[Hashable, Response]] = []
    give_up_s = time.monotonic() + PATIENCE_S
    while len(ended) < count:
        assert time.monotonic() < give_up_s, f"{len(courier)} transfers did not come back"
        ended += courier.wait(1.0)[0]
    return ended


def deliver(courier: Courier, url: str, body: bytes = b"[]") -> Response:
    courier.send("it", message(url, body))
    ((key, response),) = collect(courier)
    assert key == "it"
    return response


def outcome(response: Response) -> Outcome:
    return judge(response, SystemClock().now_ms())

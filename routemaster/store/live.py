"""What is accepted, told to who follows a topic's stream."""

from __future__ import annotations

from dataclasses import dataclass

from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Link

LIVE_MS = 30_000


@dataclass(frozen=True, slots=True)
class Told:
    """Events accepted in one publish, in order; `before` is the number of the event before."""

    before: int
    events: list[bytes]


class LiveStore:
    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys

    def channel(self, topic: str) -> str:
        """Named like the topic's key."""
        return self._keys.topic(topic)

    def beat(self, live_ms: int = LIVE_MS, now_ms: int | str = "") -> int:
        """Publishing tells what it accepts from now on, and for so long."""
        until_ms: int = self._link.run(
            scripts.load().live_beat, [self._keys.routes], [now_ms, live_ms]
        )
        return until_ms


def told(payload: bytes) -> Told | None:
    """None for what publishing did not say: anybody may write to a channel."""
    before, *events = payload.split(b"\n")
    return Told(int(before), events) if before.isdigit() and events else None

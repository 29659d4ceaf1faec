"""What a subscriber gets: the batch as a JSON array, signed after Standard Webhooks."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from routemaster import __version__
from routemaster.domain.batch import Batch
from routemaster.domain.receiver import Receiver
from routemaster.domain.signature import signatures


@dataclass(frozen=True, slots=True)
class Message:
    url: str
    headers: tuple[str, ...]
    body: bytes


def compose(
    batch: Batch, receiver: Receiver, now_ms: int, dropped: Sequence[tuple[int, int]] = ()
) -> Message:
    body = b"[" + b",".join(batch.events) + b"]"
    seconds = now_ms // 1000
    user = base64.b64encode(f"{receiver.uuid}:x".encode()).decode()
    headers = [
        "Content-Type: application/json",
        f"Authorization: Basic {user}",
        f"User-Agent: routemaster/{__version__}",
        f"webhook-id: {batch.bid}",
        f"webhook-timestamp: {seconds}",
        f"webhook-signature: {signatures(receiver.secrets, batch.bid, seconds, body)}",
        f"Routemaster-Attempt: {batch.attempts + 1}",
        # A facet may be any text; a header may not.
        f"Routemaster-Lane: {quote(batch.lane, safe=':')}",
        f"Routemaster-Sequence: {batch.first_seq}-{batch.last_seq}",
        "Expect:",  # or libcurl asks first, and waits a second for an answer
    ]
    if dropped:
        ranges = ", ".join(f"{first}-{last}" for first, last in dropped)
        headers.append(f"Routemaster-Dropped: {ranges}")
    return Message(receiver.callback, tuple(headers), body)

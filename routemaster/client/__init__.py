"""Publishing to a bus from Python. Needs `requests`, and nothing of what the bus itself needs."""

from __future__ import annotations

from routemaster.client.background import BackgroundPublisher
from routemaster.client.client import Client
from routemaster.client.errors import (
    BusError,
    Conflict,
    InvalidRequest,
    NotAllowed,
    NotFound,
    NotSent,
    TooManyAtOnce,
    Unauthorized,
    Unavailable,
)
from routemaster.client.event import Event
from routemaster.client.pulled import Pulled
from routemaster.client.stream import Live

__all__ = [
    "BackgroundPublisher",
    "BusError",
    "Client",
    "Conflict",
    "Event",
    "InvalidRequest",
    "Live",
    "NotAllowed",
    "NotFound",
    "NotSent",
    "Pulled",
    "TooManyAtOnce",
    "Unauthorized",
    "Unavailable",
]

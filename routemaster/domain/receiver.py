from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Receiver:
    """What delivering needs to know of a subscriber. `secrets`: two while one is replaced."""

    name: str
    callback: str
    uuid: str
    secrets: tuple[str, ...]
    health_points: int

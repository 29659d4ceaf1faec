from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    GAUGE = "gauge"
    # A total that only rises, since the bus first ran. Never an increment: any worker may be the
    # next to report, and none knows what the others have sent.
    COUNTER = "counter"


@dataclass(frozen=True, slots=True)
class Sample:
    """`name` has dots; adapters spell it their way."""

    kind: Kind
    name: str
    value: int | float
    tags: tuple[tuple[str, str], ...] = ()


def gauge(name: str, value: int | float, **tags: str) -> Sample:
    return Sample(Kind.GAUGE, name, value, tuple(tags.items()))


def counter(field: str, value: int) -> Sample:
    """`field` is `name,tag=value,...`, as the counters are kept."""
    name, *parts = re.split(r",(?=\w+=)", field)
    tags = tuple((tag, text) for tag, _, text in (part.partition("=") for part in parts))
    return Sample(Kind.COUNTER, name, value, tags)

"""A lane is one ordered queue of a subscriber's batches; order is promised within it only."""

from __future__ import annotations

import zlib

# Cannot be part of a client's name, so the first one always ends the subscriber.
_SEPARATOR = "|"


def lane_of(url: str, facet: str | None, concurrency: int) -> str:
    if facet is not None:
        return "f:" + facet
    if concurrency == 1:
        return "0"
    # crc32 and not hash(): every process has to choose the same lane for a resource.
    return str(zlib.crc32(url.encode()) % concurrency)


def lane_id(subscriber: str, lane: str) -> str:
    return subscriber + _SEPARATOR + lane


def split_lane_id(text: str) -> tuple[str, str]:
    subscriber, _, lane = text.partition(_SEPARATOR)
    return subscriber, lane

from __future__ import annotations

from dataclasses import dataclass

from routemaster.bus import Bus
from routemaster.checks import parse_info


@dataclass(frozen=True, slots=True)
class Memory:
    used_bytes: int
    max_bytes: int
    is_freeing: bool  # what was deleted counts as used until a thread of Redis has freed it


@dataclass(frozen=True, slots=True)
class Marks:
    high_bytes: int  # above it dropping begins
    low_bytes: int  # and here it ends


def measure(bus: Bus) -> Memory:
    """As Redis itself compares it with its maximum: its own buffers for disk and replicas do not
    count, and dropping events would not make them smaller."""
    info = parse_info(bus.link.call("INFO", "memory"))
    uncounted = int(info.get("mem_not_counted_for_evict", 0))
    return Memory(
        used_bytes=int(info["used_memory"]) - uncounted,
        max_bytes=int(info.get("maxmemory", 0)) or bus.settings.redis_max_mem_bytes,
        is_freeing=int(info.get("lazyfree_pending_objects", 0)) > 0,
    )


def marks_of(max_bytes: int, min_free_bytes: int) -> Marks:
    # Meant for another maximum than this Redis has: taken as it is, it would drop everything.
    if 2 * min_free_bytes >= max_bytes:
        min_free_bytes = max_bytes // 10
    return Marks(max_bytes - min_free_bytes, max_bytes - 2 * min_free_bytes)

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def on_one_core(pids: Sequence[int]) -> Iterator[None]:
    """This process and the others share a core. Waking a process on another core costs as much as
    a publish, and the scheduler's choice would be taken for a difference between two servers."""
    if not hasattr(os, "sched_setaffinity"):  # not Linux
        yield
        return
    before = os.sched_getaffinity(0)
    for pid in (0, *pids):
        os.sched_setaffinity(pid, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)

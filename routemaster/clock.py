from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time is stored, monotonic time measures: an operator who sets the clock back must not
    stretch a deadline."""

    def now_ms(self) -> int: ...

    def mono_ms(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def mono_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

from __future__ import annotations


class SetClock:
    """Stands still until it is moved; sleeping moves it."""

    def __init__(self, at_ms: int = 1_700_000_000_000) -> None:
        self.at_ms = at_ms
        self.slept_s: list[float] = []

    def now_ms(self) -> int:
        return self.at_ms

    def mono_ms(self) -> int:
        return self.at_ms

    def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.at_ms += int(seconds * 1000)

"""Doing something between two steps of what is tested: dying, or another's work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


class Killed(BaseException):
    """No handler of ours catches it: as good as a SIGKILL, and a hundred times faster."""


@dataclass
class Steps:
    """Calls `act` before step number `at`; steps are calls of what is wrapped, and their ends."""

    at: int
    act: Callable[[], None]
    taken: int = field(default=0)

    def step(self) -> None:
        self.taken += 1
        if self.taken == self.at:
            self.act()

    def wrap(self, inner: Any) -> Any:
        return Wrapped(inner, self)


class Wrapped:
    def __init__(self, inner: Any, steps: Steps) -> None:
        self._inner = inner
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def stepping(*args: Any, **options: Any) -> Any:
            self._steps.step()
            result = found(*args, **options)
            self._steps.step()
            return result

        return stepping

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from routemaster.client.http import Answer


@dataclass(frozen=True, slots=True)
class Pulled:
    """A batch under a lease, which `lease` proves."""

    id: str
    events: tuple[dict[str, Any], ...]
    attempt: int
    lane: str
    lease: str

    @property
    def fence(self) -> dict[str, str]:
        return {"Routemaster-Lease": self.lease}

    @classmethod
    def of(cls, answer: Answer) -> Pulled:
        found = answer.headers
        return cls(
            found["webhook-id"],
            tuple(answer.json),
            int(found["Routemaster-Attempt"]),
            found["Routemaster-Lane"],
            found["Routemaster-Lease"],
        )

from __future__ import annotations

from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Arg, Link

# Workers beat once a second. Who was silent for so long is not coming back under that name.
FORGOTTEN_AFTER_MS = 60_000


class WorkerStore:
    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys

    def beat(self, worker: str, now_ms: int | str = "") -> None:
        args: list[Arg] = [worker, now_ms, FORGOTTEN_AFTER_MS]
        self._link.run(scripts.load().worker_beat, [self._keys.workers], args)

    def leave(self, worker: str) -> None:
        self._link.call("HDEL", self._keys.workers, worker)

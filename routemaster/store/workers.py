from __future__ import annotations

from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Link


class WorkerStore:
    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys

    def beat(self, worker: str, now_ms: int | str = "") -> None:
        self._link.run(scripts.load().worker_beat, [self._keys.workers], [worker, now_ms])

    def leave(self, worker: str) -> None:
        self._link.call("HDEL", self._keys.workers, worker)

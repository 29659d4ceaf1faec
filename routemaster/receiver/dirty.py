"""What has changed and is yet to be looked at, once however often it changes meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

from routemaster.receiver.batch import Batch, Busy, Handler


class DirtyMap:
    """In this process. When `most` URLs are dirty, the bus is told to wait with more."""

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._urls: dict[str, None] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._urls)

    def all(self) -> list[str]:
        with self._lock:
            return list(self._urls)

    def mark(self, url: str) -> bool:
        """False when it was dirty already."""
        with self._lock:
            if url in self._urls:
                return False
            if len(self._urls) >= self._most:
                raise Busy(5)
            self._urls[url] = None
            return True

    def sweep(self, clean: Callable[[str], object], limit: int = 0) -> int:
        """Calls `clean` with each dirty URL (or `limit` of them), oldest first. One for which it
        returns something false, or raises, stays dirty. Returns how many are clean now."""
        swept = 0
        for url in self.all()[: limit or None]:
            with self._lock:
                if url not in self._urls:
                    continue  # another sweeper was faster
                del self._urls[url]  # before, so that a change meanwhile marks it anew
            is_clean = False
            try:
                is_clean = bool(clean(url))
            finally:
                if not is_clean:
                    with self._lock:
                        self._urls.setdefault(url)
            swept += is_clean
        return swept


def mark_dirty(dirty: DirtyMap, next: Handler | None = None) -> Handler:
    def handle(batch: Batch) -> None:
        for event in batch.events:
            dirty.mark(event["url"])
        if next:
            next(batch)

    return handle

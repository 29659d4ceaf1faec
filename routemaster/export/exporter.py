"""One turn of the export: all that is new, into files."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from routemaster.bus import Bus
from routemaster.checks import parse_info
from routemaster.export.drain import STREAMS, Drain
from routemaster.export.folder import Folder
from routemaster.export.snapshots import Snapshots
from routemaster.redis_address import mask_url

FAULTS = (OSError, pa.ArrowException)
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Turn:
    rows: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.rows.values())


class Exporter:
    def __init__(self, bus: Bus, folder: Folder | None = None) -> None:
        self._bus = bus
        format = bus.settings.export_format
        self.folder = folder or Folder.of(bus.settings.export_url or "")
        self._drain = Drain(bus.exports, self.folder, format)
        self._snapshots = Snapshots(bus, self.folder, format)
        self._run_ids: dict[str, str] = {}
        self._overflowed = 0

    def turn(self, is_over: Callable[[], bool] = lambda: False) -> Turn:
        done = Turn()
        done.rows["snapshots"] = self._snapshots.take()
        # A Redis that was started anew may have come back with less than it had.
        run_id = parse_info(self._bus.link.call("INFO", "server")).get("run_id", "")
        for name in [*sorted(STREAMS, reverse=True), "publishes"]:
            is_sure = bool(run_id) and self._run_ids.get(name) == run_id
            done.rows[name] = (
                self._drain.publishes(is_over, is_sure)
                if name == "publishes"
                else self._drain.stream(name, is_over, is_sure)
            )
            self._run_ids[name] = run_id
        self._tell_overflow()
        return done

    def _tell_overflow(self) -> None:
        """A gap must be seen by who reads the log, too."""
        counted = self._bus.counters.read()
        total = sum(counted.get(f"{name}.overflowed", 0) for name in (*STREAMS, "publishes"))
        if total > self._overflowed:
            log.error("export overflowed rows=%s", total - self._overflowed)
        self._overflowed = total


def said(error: BaseException, url: str) -> str:
    """An error of a file system, without the secrets of the URL that it may repeat."""
    text = str(error).replace(url, mask_url(url))
    secret = re.search(r"://[^:@/?#]*:([^/?#]*)@", url)
    if secret and secret[1]:
        text = text.replace(secret[1], "***")
    return mask_url(text)

from __future__ import annotations

from routemaster.domain.datasets import DATASETS
from routemaster.export.compact import dates
from routemaster.export.drain import date_of
from routemaster.export.folder import Folder
from routemaster.export.manifest import write_manifest
from routemaster.export.retain import retain


def tidy(folder: Folder, now_ms: int, days: int) -> list[str]:
    """What an export needs now and then: old partitions go, manifests are true. Returns what was
    dropped."""
    gone = retain(folder, date_of(now_ms), days)
    for dataset in DATASETS.values():
        if dates(folder, dataset):
            write_manifest(folder, dataset)
    return gone

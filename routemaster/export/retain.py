from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta

from routemaster.domain.datasets import DATASETS, Dataset
from routemaster.export.compact import dates
from routemaster.export.folder import Folder


def retain(
    folder: Folder,
    today: str,
    days: int,
    datasets: Iterable[Dataset] = tuple(DATASETS.values()),
) -> list[str]:
    """Drop what is older than so many days; 0 keeps everything. Returns what was dropped."""
    if days <= 0:
        return []
    oldest = (date.fromisoformat(today) - timedelta(days=days)).isoformat()
    gone = []
    for dataset in datasets:
        for day in dates(folder, dataset):
            if is_date(day) and day < oldest:
                path = folder.path(dataset.name, f"date={day}")
                folder.fs.delete_dir(path)
                gone.append(path)
    return gone


def is_date(text: str) -> bool:
    """Nobody's own folder is dropped."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False

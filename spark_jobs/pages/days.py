"""Which days a page is about, and how fine it draws them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from routemaster.domain.datasets import DATASETS
from routemaster.export.files import listing
from spark_jobs.files import NoExport, Root
from spark_jobs.html.words import day
from spark_jobs.reading import Export

# Above so many days a picture has a point for each day, not for each hour.
MOST_DAYS_BY_HOUR = 21
MOST_DAYS = 366
HOUR_MS, DAY_MS = 3_600_000, 86_400_000


@dataclass(frozen=True, slots=True)
class Days:
    """Both included."""

    first: date
    last: date

    def __str__(self) -> str:
        return f"{day(_midnight(self.first))} to {day(_midnight(self.last))} {self.last.year}"

    @property
    def by(self) -> str:
        """hour or day: the length of a period."""
        return "hour" if (self.last - self.first).days < MOST_DAYS_BY_HOUR else "day"

    @property
    def period_ms(self) -> int:
        return HOUR_MS if self.by == "hour" else DAY_MS

    @property
    def first_ms(self) -> int:
        return round(_midnight(self.first).timestamp() * 1000)

    @property
    def end_ms(self) -> int:
        return round(_midnight(self.last + timedelta(days=1)).timestamp() * 1000)

    @property
    def end(self) -> datetime:
        return _midnight(self.last + timedelta(days=1))

    @property
    def starts_ms(self) -> list[int]:
        return list(range(self.first_ms, self.end_ms, self.period_ms))


def days_of(export: Export) -> Days:
    """What was asked for; where nothing was, what there is. Only file names are looked at."""
    folder = Root.open(export.root).folder
    since = export.first_day.isoformat() if export.first_day else ""
    until = export.last_day.isoformat() if export.last_day else "9999-12-31"
    found = [
        file.date
        for dataset in DATASETS.values()
        for file in listing(folder, dataset, since, until, check=False).files
    ]
    if not found:
        raise NoExport(f"--input {export.root}: no files of an export in these days")
    first, last = date.fromisoformat(min(found)), date.fromisoformat(max(found))
    if (last - first).days >= MOST_DAYS:
        raise NoExport(f"a page shows at most {MOST_DAYS} days: give --from and --to")
    return Days(first, last)


def _midnight(at: date) -> datetime:
    return datetime(at.year, at.month, at.day, tzinfo=UTC)

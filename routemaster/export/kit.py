"""What the command and the worker's job need of this package, in one import: it brings pyarrow,
which is an extra and takes a fifth of a second."""

from __future__ import annotations

from routemaster.export.compact import compact
from routemaster.export.drain import date_of
from routemaster.export.exporter import FAULTS, Exporter, said
from routemaster.export.files import listing
from routemaster.export.folder import Folder
from routemaster.export.tidy import tidy
from routemaster.redis_address import mask_url

__all__ = [
    "FAULTS",
    "Exporter",
    "Folder",
    "compact",
    "date_of",
    "listing",
    "mask_url",
    "said",
    "tidy",
]

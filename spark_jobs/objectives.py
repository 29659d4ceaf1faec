"""Objectives: how many events have to arrive, and within what time. From a small TOML file.

[default]
target_percent = 99.9
within_seconds = 5

[[override]]                   # the first that fits a subscriber's name wins
subscriber = "reports-*"       # * is any text, ? any one character
within_seconds = 300           # what is not said is as in [default]
"""

from __future__ import annotations

import math
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

FIELDS = ("target_percent", "within_seconds")
LONGEST_SECONDS = 31 * 86_400
MOST_OVERRIDES = 1_000


class BadObjectives(Exception):
    """Names the field, and what it must be."""


@dataclass(frozen=True, slots=True)
class Objective:
    target_percent: float = 99.9
    within_seconds: float = 5.0
    subscriber: str = "*"


@dataclass(frozen=True, slots=True)
class Objectives:
    default: Objective = Objective()
    overrides: tuple[Objective, ...] = ()

    def column(self, field: str, subscriber: str = "subscriber") -> Column:
        """`field` of the objective that holds for each row's subscriber."""
        chosen: Column | None = None
        for one in self.overrides:
            fits = F.col(subscriber).rlike(as_regex(one.subscriber))
            value = F.lit(float(getattr(one, field)))
            chosen = F.when(fits, value) if chosen is None else chosen.when(fits, value)
        default = F.lit(float(getattr(self.default, field)))
        return default if chosen is None else chosen.otherwise(default)


def as_regex(glob: str) -> str:
    """For Java. Names hold no character that means something in it, but a glob may hold any."""
    parts = {"*": ".*", "?": "."}
    return r"\A" + "".join(parts.get(c, rf"\x{{{ord(c):x}}}") for c in glob) + r"\z"


def load(path: str | Path) -> Objectives:
    try:
        return parse(Path(path).read_text("utf-8"))
    except OSError as error:
        raise BadObjectives(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadObjectives(f"{path}: is not UTF-8") from None
    except BadObjectives as error:
        raise BadObjectives(f"{path}: {error}") from None


def parse(text: str) -> Objectives:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadObjectives(f"is not TOML: {error}") from None
    known(tables, "", ("default", "override"))
    default = objective(tables.get("default", {}), "default", Objective())
    overrides = tables.get("override", [])
    if not isinstance(overrides, list) or len(overrides) > MOST_OVERRIDES:
        raise BadObjectives(f"override must be [[override]] tables, at most {MOST_OVERRIDES}")
    return Objectives(
        default,
        tuple(override(one, f"override[{n}]", default) for n, one in enumerate(overrides)),
    )


def override(table: Any, where: str, default: Objective) -> Objective:
    glob = table.get("subscriber") if isinstance(table, dict) else None
    if not isinstance(glob, str) or not glob:
        raise BadObjectives(f"{where}.subscriber must be a name, which may hold * and ?")
    found = objective({k: v for k, v in table.items() if k != "subscriber"}, where, default)
    return Objective(found.target_percent, found.within_seconds, glob)


def objective(table: Any, where: str, default: Objective) -> Objective:
    if not isinstance(table, dict):
        raise BadObjectives(f"{where} must be a table")
    known(table, f"{where}.", FIELDS)
    target = table.get("target_percent", default.target_percent)
    within = table.get("within_seconds", default.within_seconds)
    # With 100 there is no error budget, and nothing to divide by.
    if not is_number(target) or not 0 < target < 100:
        raise BadObjectives(f"{where}.target_percent must be a number above 0 and below 100")
    if not is_number(within) or not 0 < within <= LONGEST_SECONDS:
        raise BadObjectives(
            f"{where}.within_seconds must be a number above 0, at most {LONGEST_SECONDS} (31 days)"
        )
    return Objective(float(target), float(within))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def known(table: dict[str, Any], where: str, names: tuple[str, ...]) -> None:
    for name in table:
        if name not in names:
            raise BadObjectives(f"{where}{name} is not known; there are {', '.join(names)}")

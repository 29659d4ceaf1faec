"""Python with chosen packages and no others, taken from what the tests themselves run with."""

from __future__ import annotations

from importlib.metadata import files, requires
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

MODULES = {"markdown-it-py": "markdown_it"}


def modules_of(*distributions: str) -> list[Path]:
    """Where the named packages and all they need are, with what is written about each."""
    found: dict[str, Path] = {}
    left = list(distributions)
    while left:
        name = left.pop().lower()
        spec = find_spec(MODULES.get(name, name.replace("-", "_")))
        if name in found or spec is None or spec.origin is None:
            continue
        origin = Path(spec.origin)
        found[name] = origin.parent if spec.submodule_search_locations else origin
        found[f"{name} info"] = info_of(name)
        for line in requires(name) or []:
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                left.append(needed.name)
    return list(found.values())


def info_of(name: str) -> Path:
    """Some ask for their own version."""
    return next(
        Path(str(file.locate())).parent
        for file in files(name) or []
        if file.name == "METADATA" and file.parent.name.endswith(".dist-info")
    )


def link(folder: Path, *distributions: str) -> None:
    for path in modules_of(*distributions):
        (folder / path.name).symlink_to(path)

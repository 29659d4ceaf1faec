"""What the README tells people who read the export, as it stands there."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from routemaster.domain.datasets import ATTEMPTS
from routemaster.export.exporter import Exporter
from routemaster.export.files import listing
from tests.export.drained import tried

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
EXPORT = README.split("\n## Export\n", 1)[1].split("\n## ", 1)[0]
LISTING, READING = re.findall(r"^```python\n(.*?)^```", EXPORT, re.M | re.S)


@pytest.fixture
def files(bus, folder, monkeypatch) -> list[str]:
    tried(bus, 7)
    Exporter(bus, folder).turn()
    scope: dict[str, object] = {}
    exec(LISTING.replace("var/export", folder.root), scope)
    found = scope["files"]
    assert found == [file.path for file in listing(folder, ATTEMPTS).files]
    return list(map(str, found))


def line_of(tool: str) -> str:
    found = [ast.unparse(statement) for statement in ast.parse(READING).body]
    [line] = [line for line in found if line.startswith(f"{tool}.")]
    return line


@pytest.mark.parametrize("tool", ["duckdb", "polars", "pandas"])
def test_a_line_that_reads_it(files, tool):
    if tool == "pandas":
        pytest.importorskip("pandas")
    found = eval(line_of(tool), {tool: importlib.import_module(tool), "files": files})
    rows = {"duckdb": "fetchall", "polars": "rows", "pandas": "items"}[tool]
    assert sorted(getattr(found, rows)()) == [("s0", 3), ("s1", 2), ("s2", 2)]

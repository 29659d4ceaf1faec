from __future__ import annotations

from routemaster.domain.datasets import ATTEMPTS
from routemaster.export.arrow import table_of
from routemaster.export.files import PART
from routemaster.export.folder import Folder
from routemaster.export.writing import publish
from tests.export.test_files import rows_of
from tests.export.test_readme import line_of


def test_a_line_that_reads_it(spark, tmp_path):
    """The README's, on a file as the exporter writes them."""
    table = table_of(ATTEMPTS, rows_of(ATTEMPTS, 6))
    path = publish(Folder.of(str(tmp_path)), ATTEMPTS, "2026-11-18", PART, "1", "1", [table])
    found = eval(line_of("spark"), {"spark": spark, "files": [path]}).collect()
    assert sum(row["count"] for row in found) == 6

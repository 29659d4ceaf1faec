"""`make report`: all reports on one page, of the export there is, or of demo data."""

from __future__ import annotations

import sys
from pathlib import Path

from routemaster.cli.demo_data import DEFAULT_OUTPUT as DEMO
from routemaster.cli.demo_data import command as demo_data
from routemaster.domain.datasets import DATASETS
from routemaster.dotenv import read_settings
from routemaster.export.files import listing
from routemaster.export.folder import Folder
from spark_jobs import all as all_reports

REPORT = "report.html"


def main() -> int:
    settings = read_settings(needs_key=False)
    source = settings.export_url or ""
    if not source or is_empty(source):
        source = str(settings.data_dir / Path(DEMO).name)
        if is_empty(source):
            print(f"No export yet: making two weeks of demo data in {source}", file=sys.stderr)
            demo_data(["--output", source], standalone_mode=False)
    print(f"Reporting on {source}", file=sys.stderr)
    output = settings.data_dir / REPORT
    return all_reports.main(["--input", source, "--output", str(output), "--overwrite"])


def is_empty(source: str) -> bool:
    folder = Folder.of(source)
    return not any(listing(folder, one, check=False).files for one in DATASETS.values())


if __name__ == "__main__":
    sys.exit(main())

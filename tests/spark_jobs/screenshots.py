"""`make report-screenshots`: the top of each report's page, of demo data, for the README."""

from __future__ import annotations

import sys
import tempfile
from argparse import Namespace
from pathlib import Path

from selenium.webdriver import Chrome

from routemaster.cli.demo_data import command as demo_data
from spark_jobs import all as all_reports
from spark_jobs.html.page import page
from spark_jobs.pages import write
from spark_jobs.pages.days import days_of
from spark_jobs.reading import Export
from spark_jobs.session import open_session
from tests.dashboard import browser
from tests.integration.processes import CHECKOUT

FOLDER = CHECKOUT / "docs" / "screenshots"
WIDTH, MOST_HEIGHT = 1000, 1400
MOST_BYTES = 300_000


# More would be left out of the pictures anyhow.
SUBSCRIBERS = "25"


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rm-demo-") as folder:
        demo_data(
            ["--subscribers", SUBSCRIBERS, "--output", f"{folder}/demo"], standalone_mode=False
        )
        export = Export(open_session("screenshots"), f"{folder}/demo")
        days = days_of(export)
        sections = all_reports.make_sections(export, days, Namespace())
        pages = {"all": page(all_reports.TITLE, str(days), sections)}
        for section in sections:
            pages[section.key] = page(section.title, str(days), [section])
        with browser.started() as driver:
            browser.prefer(driver, "light")
            for short, text in pages.items():
                take(driver, short, write(text, f"{folder}/{short}.html"))
    return 0


def take(driver: Chrome, short: str, file: str) -> None:
    browser.resize(driver, (WIDTH, 800))
    driver.get(Path(file).as_uri())
    height = driver.execute_script("return document.documentElement.scrollHeight")
    browser.resize(driver, (WIDTH, min(height, MOST_HEIGHT)))
    path = FOLDER / f"report-{short}.png"
    driver.save_screenshot(str(path))
    print(f"{path} {path.stat().st_size} bytes")
    assert path.stat().st_size < MOST_BYTES, f"{path} is too large for a README"


if __name__ == "__main__":
    sys.exit(main())

"""A headless Chromium, as a person would use it: real clicks, real keys, a real window."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium.webdriver import Chrome, ChromeOptions, ChromeService

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars", "--lang=en-GB",
)  # fmt: skip
WIDE, NARROW = (1280, 900), (390, 844)
# The kernel of a small machine may be busy with everything else.
PATIENCE_S = 30


def find() -> tuple[str, str] | None:
    """Chromium and its driver."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def started(dark: bool = False) -> Iterator[Chrome]:
    found = find()
    assert found, "needs chromium and chromedriver"
    profile = Path(tempfile.mkdtemp(prefix="rm-chromium-"))
    options = ChromeOptions()
    options.binary_location = found[0]
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, ChromeService(found[1]))
    driver.set_page_load_timeout(PATIENCE_S)
    try:
        resize(driver, WIDE)
        yield driver
    finally:
        driver.quit()
        shutil.rmtree(profile, ignore_errors=True)


def resize(driver: Chrome, size: tuple[int, int], scale: float = 1) -> None:
    """The page's own width: a headless window would not get as narrow as a phone."""
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def prefer(driver: Chrome, scheme: str) -> None:
    """light or dark."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

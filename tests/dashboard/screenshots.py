"""`make screenshots`: a bus with demo traffic, and a picture of each page of its dashboard."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By

from routemaster.web.dashboard.pages import TABS
from tests.conftest import ROOT_KEY
from tests.dashboard import browser
from tests.dashboard.demo import Demo, demo
from tests.integration.processes import CHECKOUT

FOLDER = CHECKOUT / "docs" / "screenshots"
WARM_UP_S = 12
MOST_BYTES = 250_000
TALLEST, LEAST_HEIGHT = 1500, 480


def pages() -> dict[str, str]:
    named = {tab.path: tab.path.removeprefix("/dashboard").strip("/") or "overview" for tab in TABS}
    named["/dashboard/stream?topic=orders"] = named.pop("/dashboard/stream")
    extra = {"subscriber": "/dashboard/subscribers/analytics"}
    return {name: path for path, name in named.items()} | extra


def sign_in(driver: Chrome, url: str, token: str) -> None:
    driver.get(f"{url}/dashboard/sign-in")
    driver.find_element(By.ID, "token").send_keys(token)
    driver.find_element(By.CSS_SELECTOR, "button.main").click()


def take(driver: Chrome, folder: Path, name: str, size: tuple[int, int]) -> None:
    browser.resize(driver, (size[0], LEAST_HEIGHT))  # or a short page would have a long empty end
    height = driver.execute_script("return document.documentElement.scrollHeight")
    browser.resize(driver, (size[0], min(height, TALLEST)))
    path = folder / f"dashboard-{name}.png"
    driver.save_screenshot(str(path))
    browser.resize(driver, size)
    print(f"{path} {path.stat().st_size} bytes")
    assert path.stat().st_size < MOST_BYTES, f"{path} is too large for a README"


def take_all(driver: Chrome, shown: Demo, folder: Path) -> None:
    url = shown.running.web.url
    browser.resize(driver, browser.WIDE)
    driver.get(f"{url}/dashboard")
    take(driver, folder, "sign-in", (640, 560))
    sign_in(driver, url, ROOT_KEY)
    for name, path in pages().items():
        browser.resize(driver, browser.WIDE)
        driver.get(url + path + ("?window=6h" if name == "overview" else ""))
        time.sleep(5)  # two rounds of live numbers
        take(driver, folder, name, browser.WIDE)
    browser.prefer(driver, "dark")
    driver.get(f"{url}/dashboard?window=6h")
    time.sleep(3)
    take(driver, folder, "dark", browser.WIDE)
    browser.resize(driver, browser.NARROW)
    take(driver, folder, "narrow", browser.NARROW)


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with demo() as shown, browser.started() as driver:
        threading.Thread(target=shown.flow, daemon=True).start()
        time.sleep(WARM_UP_S)
        take_all(driver, shown, folder)


if __name__ == "__main__":
    main()

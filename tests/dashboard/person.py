"""What a person does with the dashboard, and sees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.dashboard.browser import PATIENCE_S

TURN_S = 0.05


class Person:
    def __init__(self, driver: Chrome, url: str) -> None:
        self.driver = driver
        self._url = url

    def go(self, path: str = "") -> None:
        self.driver.get(f"{self._url}/dashboard{path}")

    def sign_in(self, token: str) -> None:
        self.driver.delete_all_cookies()
        self.go("/sign-in")
        self.find("#token").send_keys(token)
        self.click("button.main")
        self.wait_for(lambda: self.sees("Overview"))

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def click(self, selector: str) -> None:
        """By script, because what is looked for may be renewed between the look and the click."""
        self.wait_for(lambda: self.all(selector))
        self.driver.execute_script("document.querySelector(arguments[0]).click()", selector)

    def text(self, selector: str = "main") -> str:
        """'' when there is no such element. By script, because a page that is being renewed has
        elements for a moment only."""
        read = "const found = document.querySelector(arguments[0]); return found?.innerText ?? ''"
        return str(self.script(read, selector)).strip()

    def sees(self, words: str, selector: str = "main") -> bool:
        return words in self.text(selector)

    def wait_for(self, is_so: Callable[[], Any]) -> None:
        # A page may go in the middle of a look.
        ignored = (WebDriverException,)
        waiting = WebDriverWait(self.driver, PATIENCE_S, TURN_S, ignored_exceptions=ignored)
        waiting.until(lambda _: is_so(), f"at {self.path}")

    def wait_to_see(self, words: str, selector: str = "main") -> None:
        self.wait_for(lambda: self.sees(words, selector))

    def reload_until_there_is(self, selector: str) -> None:
        def is_there() -> bool:
            if not self.all(selector):
                self.driver.refresh()
            return bool(self.all(selector))

        self.wait_for(is_there)

    def press(self, *keys: str) -> None:
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def script(self, code: str, *given: object) -> Any:
        return self.driver.execute_script(code, *given)

    @property
    def path(self) -> str:
        return self.driver.current_url.removeprefix(self._url)

    @property
    def focused(self) -> WebElement:
        return self.driver.switch_to.active_element

    def tab_to(self, words: str, exactly: bool = False, most: int = 60) -> None:
        """With the Tab key alone, to the element that reads so."""
        for _ in range(most):
            self.press(Keys.TAB)
            text = self.focused.text.strip()
            if text == words or (not exactly and text.startswith(words)):
                return
        raise AssertionError(f"Tab does not lead to {words!r} on {self.path}")

    def mark(self) -> None:
        """So that a page that was loaded anew is told from one that was kept fresh."""
        self.script("window.isTheSame = true")

    @property
    def is_marked(self) -> bool:
        return bool(self.script("return window.isTheSame === true"))

    def complaints(self) -> list[str]:
        """What the browser's console said since the last look: blocked content, errors."""
        return [
            entry["message"] for entry in self.driver.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING")
        ]  # fmt: skip

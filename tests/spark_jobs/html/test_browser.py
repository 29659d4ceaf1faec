"""A page in a real browser: sorting, light and dark, phones, and without any script."""

from __future__ import annotations

import os

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from spark_jobs.html.lines import Line, line_chart
from spark_jobs.html.page import Block, Figure, Finding, Section, page
from spark_jobs.html.tables import Cell, Column, table
from tests.dashboard import browser

ROWS = [("b", "9", 9), ("c", "10,000", 10_000), ("a", "\u2013", None), ("d", "80%", 0.8)]


@pytest.fixture(scope="module")
def driver():
    if browser.find() is None:
        if os.environ.get("CI"):
            pytest.fail("needs chromium and chromedriver")
        pytest.skip("needs chromium and chromedriver")
    with browser.started() as driver:
        yield driver


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    cells = [[Cell(name), Cell(shown, sort)] for name, shown, sort in ROWS]
    columns = [Column("Name", False), Column("Number")]
    blocks = [
        Block("Table", "", table("A table", columns, cells)),
        Block("Chart", "", line_chart("A chart", [0, 3_600_000], [Line("all", [1.0, 2.0])])),
    ]
    long = "a-subscriber-with-a-very-long-name-that-never-ends " * 4
    section = Section("one", "One", "about", [Figure("1", "one")], [Finding("bad", long)], blocks)
    file = tmp_path_factory.mktemp("page") / "page.html"
    file.write_text(page("Report", "a week", [section]))
    return file.as_uri()


def names(driver):
    return [cell.text for cell in driver.find_elements(By.CSS_SELECTOR, "tbody th")]


def click(driver, title):
    buttons = driver.find_elements(By.CSS_SELECTOR, "thead button")
    next(button for button in buttons if button.text.startswith(title)).click()


@pytest.mark.slow
def test_a_click_sorts_by_what_a_cell_means_and_another_turns_it(driver, address):
    driver.get(address)
    assert names(driver) == ["b", "c", "a", "d"]
    click(driver, "Number")
    assert names(driver) == ["c", "b", "d", "a"]
    click(driver, "Number")
    assert names(driver) == ["d", "b", "c", "a"]
    head = driver.find_elements(By.CSS_SELECTOR, "thead th")[1]
    assert head.get_attribute("aria-sort") == "ascending"
    click(driver, "Name")
    assert names(driver) == ["a", "b", "c", "d"]
    assert head.get_attribute("aria-sort") is None


def background(driver):
    return driver.execute_script("return getComputedStyle(document.body).backgroundColor")


@pytest.mark.slow
def test_it_is_as_dark_as_the_system_until_the_reader_chooses(driver, address):
    browser.prefer(driver, "light")
    driver.get(address)
    light, button = background(driver), driver.find_element(By.ID, "theme")
    assert button.text == "Dark"
    browser.prefer(driver, "dark")
    dark = background(driver)
    assert dark != light
    # The page hears of it a moment after its colours have changed.
    WebDriverWait(driver, browser.PATIENCE_S).until(lambda _: button.text == "Light")
    button.click()
    assert background(driver) == light
    browser.prefer(driver, "light")
    button.click()
    assert background(driver) == dark


@pytest.mark.slow
def test_a_phone_scrolls_pictures_and_tables_but_never_the_page(driver, address):
    browser.resize(driver, browser.NARROW)
    driver.get(address)
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert driver.execute_script(wide) == 0
    chart = "const c = document.querySelector('.chart'); return c.scrollWidth > c.clientWidth"
    assert driver.execute_script(chart)
    browser.resize(driver, browser.WIDE)


@pytest.mark.slow
def test_it_says_all_it_says_without_its_script(driver, address):
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    driver.get(address)
    assert names(driver) == ["b", "c", "a", "d"]
    assert not driver.find_element(By.ID, "theme").is_displayed()
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.slow
def test_nothing_is_asked_for_and_nothing_goes_wrong(driver, address):
    driver.get(address)
    loaded = "return performance.getEntriesByType('resource').map(e => e.name)"
    assert driver.execute_script(loaded) == []
    assert driver.get_log("browser") == []

"""The dashboard as people use it, in a real Chromium. The console must stay empty: nothing blocked
by the Content-Security-Policy, no error of a script."""

from __future__ import annotations

from dataclasses import replace

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys

from routemaster.store.series import MINUTE_MS, Entry, Flow, SeriesStore
from routemaster.web.dashboard.pages import TABS
from tests.conftest import ROOT_KEY
from tests.dashboard import axe, browser
from tests.dashboard.conftest import absent
from tests.e2e.receiver import Answer, in_turn
from tests.e2e.running import event, events

# Not a failure, and not tried again by itself while a test lasts.
LATER = Answer(503, {"Retry-After": "3600"})
EVIL = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">'


@pytest.fixture
def mailer(running, receiver, topic):
    """A client that publishes to a topic and follows it."""
    client = running.client("mailer")
    client.publish(topic, event(0))
    client.subscribe(receiver, topic)
    return client


def page_of(client, rest: str = "") -> str:
    return f"/subscribers/{client.name}{rest}"


def test_signing_in_by_keyboard_and_out(person):
    person.go()
    assert person.path == "/dashboard/sign-in"
    assert person.focused.get_attribute("id") == "token"
    person.press("not the key", Keys.ENTER)
    person.wait_to_see("neither the root key nor")
    person.driver.get_log("browser")  # the 401 of the form is no secret
    person.press(ROOT_KEY, Keys.ENTER)
    person.wait_to_see("Overview", "h1")
    assert person.path == "/dashboard"
    person.tab_to("Sign out")
    person.press(Keys.ENTER)
    person.wait_for(lambda: person.path == "/dashboard/sign-in")
    person.go("/topics")
    assert person.path.startswith("/dashboard/sign-in?next=")


def test_an_event_arrives_before_ones_eyes(person, mailer, receiver, topic):
    person.sign_in(mailer.token)
    person.go(page_of(mailer))
    person.wait_to_see("Nothing was delivered", "#operations")
    person.mark()
    mailer.publish(topic, event(1))
    person.wait_to_see("success", "#operations")
    person.wait_for(lambda: person.text("#tile-sent dd") == "1")
    assert person.is_marked, "the page was loaded again"
    person.go()
    mailer.publish(topic, event(2))
    person.wait_to_see("100 %", "#tile-success")


def test_watching_a_topic_live(person, running, mailer, topic):
    person.sign_in(mailer.token)
    person.go("/stream")
    person.script("document.getElementById('topic').value = arguments[0]", topic)
    person.click("main form button")
    person.wait_to_see("Watching.", "#stream-state")
    mailer.publish(topic, *events(1, 3, facet=EVIL))
    person.wait_for(lambda: len(person.all("#stream tr")) == 3)
    assert person.text("#stream tr:first-child").endswith(EVIL)
    assert "https://pub.example/3" in person.text("#stream tr:first-child")
    person.click("#stream-hold")
    mailer.publish(topic, event(4))
    person.wait_to_see("Held", "#stream-state")
    person.click("#stream-hold")
    person.wait_for(lambda: len(person.all("#stream tr")) == 4)
    person.click("#stream-clear")
    assert person.sees("Nothing yet")
    assert person.script("return window.hacked") is None
    running.web.call("DELETE", f"/api_tokens/{mailer.token}", ROOT_KEY)
    person.wait_to_see("The stream ended: the token is not known any more.", "#stream-state")
    person.driver.get("about:blank")


def test_pausing_and_resuming(person, mailer, receiver, topic):
    person.sign_in(mailer.token)
    person.go(page_of(mailer))
    person.click("#pause")
    person.wait_to_see(f"Pause {mailer.name}?", "h1")
    person.click("#do")
    person.wait_to_see("Paused: nothing more is delivered")
    assert person.text("#state") == "paused"
    mailer.publish(topic, *events(1, 3))
    person.wait_for(lambda: person.text("#tile-queued dd") == "3")
    assert receiver.deliveries == []
    person.click("#resume")
    person.wait_to_see("Resume", "h1")
    person.click("#do")
    person.wait_to_see("Resumed")
    assert receiver.wait_for_events(3) == [1, 2, 3]
    person.wait_to_see("active", "#state")
    person.wait_for(lambda: person.text("#tile-queued dd") == "0")


def test_redelivering(person, mailer, receiver, topic):
    receiver.script = in_turn(LATER)
    mailer.publish(topic, event(1))
    receiver.wait_for_deliveries(1)
    person.sign_in(ROOT_KEY)
    person.go(page_of(mailer))
    person.wait_for(lambda: person.sees("last throttled (503)", "#operations"))
    person.click("#operations .again")
    person.wait_to_see("Deliver this batch now?", "h1")
    person.click("#do")
    person.wait_to_see("The lane of that delivery is due now.")
    first, second = receiver.wait_for_deliveries(2)
    assert first.bid == second.bid
    person.wait_to_see("success", "#operations")


def test_replaying_what_waits(person, mailer, receiver, topic):
    receiver.script = in_turn(LATER)
    mailer.publish(topic, event(1))
    receiver.wait_for_deliveries(1)
    person.sign_in(ROOT_KEY)
    person.go(page_of(mailer))
    person.wait_to_see("due in 59 min", "#lanes")
    person.click("#replay")
    person.click("#do")
    person.wait_to_see("Everything that waits is due now.")
    receiver.wait_for_deliveries(2)
    person.wait_to_see("Nothing waits.", "#lanes")


def test_by_keyboard_alone(person, mailer):
    person.sign_in(mailer.token)
    person.go()
    person.press(Keys.TAB)
    assert person.focused.text == "Skip to the content"
    person.press(Keys.ENTER)
    assert person.focused.get_attribute("id") == "main"
    person.go()
    person.tab_to("Subscribers")
    person.press(Keys.ENTER)
    person.wait_to_see("Subscribers", "h1")
    person.tab_to("Pause")
    person.press(Keys.ENTER)
    person.wait_to_see(f"Pause {mailer.name}?", "h1")
    person.tab_to("Pause")
    person.press(Keys.ENTER)
    person.wait_to_see("Paused")
    person.tab_to("Live", exactly=True)
    assert person.focused.get_attribute("aria-pressed") == "true"
    person.press(Keys.SPACE)
    assert person.focused.get_attribute("aria-pressed") == "false"


def test_what_is_focused_and_open_stays_so_while_the_page_is_renewed(
    person, mailer, receiver, topic
):
    receiver.script = in_turn(LATER)
    mailer.publish(topic, event(1))
    receiver.wait_for_deliveries(1)
    person.sign_in(mailer.token)
    person.go(page_of(mailer))
    person.wait_for(lambda: person.all("#operations details"))
    person.click("#operations summary")
    person.script("document.querySelector('#operations .again').focus()")
    mailer.publish(topic, event(2))
    person.wait_for(lambda: len(person.all("#operations tbody tr")) == 2)
    assert person.focused.text.startswith("Redeliver")
    assert person.all("#operations details[open]")


def test_without_script_everything_can_be_done(person, mailer, receiver, topic):
    person.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        person.go("/sign-in")
        person.find("#token").send_keys(mailer.token, Keys.ENTER)
        person.wait_to_see("Overview", "h1")
        assert person.sees("UTC", "#seen")
        person.find("nav a[href='/dashboard/subscribers']").click()
        # The list is looked up once a second, and without script nothing renews the page.
        person.reload_until_there_is("#subscribers tbody th a")
        person.find("#subscribers tbody th a").click()
        person.wait_to_see(mailer.name, "h1")
        person.find("#pause").click()
        person.find("#do").click()
        person.wait_to_see("Paused")
    finally:
        person.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert mailer.subscription()["state"] == "paused"


def test_what_strangers_say_is_text(person, running, mailer, receiver, topic):
    receiver.script = in_turn(replace(LATER, body=EVIL))
    facet = "<i>a</i>&quot;"
    mailer.publish(topic, event(1, facet=facet, url="https://pub.example/<script>x"))
    receiver.wait_for_deliveries(1)
    person.sign_in(ROOT_KEY)
    person.go(page_of(mailer))
    person.wait_for(lambda: person.all("#operations details"))
    person.click("#operations summary")
    person.wait_to_see(EVIL, "#operations pre")
    assert facet in person.text("#lanes")
    for path in ("/topics", "/subscribers?q=" + EVIL, f"/subscribers/{EVIL}"):
        person.go(path)
        assert person.script("return window.hacked") is None
        assert not person.all("img, script:not([src])")
    person.driver.get_log("browser")  # the 400 for that name


PAGES = ("/sign-in", *(tab.path.removeprefix("/dashboard") for tab in TABS))


def pages_of(client) -> list[str]:
    return [*PAGES, page_of(client), page_of(client, "/pause"), "/nothing"]


@pytest.fixture
def history(running):
    """A day of it, so that charts have lines."""
    from routemaster.store.keys import Keys as StoreKeys
    from routemaster.store.link import Link

    link = Link(running.redis.socket_url, 5)
    with running.redis.client() as redis:
        now = redis.time()[0] * 1000 // MINUTE_MS
        redis.delete("rm:{0}:series", "rm:{0}:series_totals")
    store = SeriesStore(link, StoreKeys("rm"))
    for n in range(60):
        totals = Flow(600 * n, 300 * n, 10 * n, n, 1000 * n, 0)
        store.append(now - 60 + n, [Entry("", totals, (n, 1, 1, 10_000_000, 0))])
    link.close()


@pytest.mark.slow
@pytest.mark.timeout(240)  # axe looks at every element of every page
def test_no_page_has_a_serious_problem_of_accessibility(person, mailer, receiver, topic, history):
    if axe.why_not():
        absent(axe.why_not())
    receiver.script = in_turn(replace(LATER, body="no"))
    mailer.publish(topic, event(1))
    receiver.wait_for_deliveries(1)
    found = {}
    person.go("/sign-in")
    found["sign-in"] = axe.problems(person.driver)
    person.sign_in(ROOT_KEY)
    some = ["", page_of(mailer)]  # all colours are on these
    for scheme, paths in (("light", pages_of(mailer)[1:]), ("dark", some)):
        browser.prefer(person.driver, scheme)
        for path in paths:
            person.go(path)
            for selector in ("#table-flow", "#operations details"):  # one of each kind
                person.script(
                    "document.querySelector(arguments[0])?.toggleAttribute('open')", selector
                )
            found[f"{path} {scheme}"] = axe.problems(person.driver)
    person.driver.get_log("browser")  # the 404
    assert {path: problems for path, problems in found.items() if problems} == {}


def test_on_a_phone_nothing_sticks_out(person, mailer, history):
    person.sign_in(ROOT_KEY)
    browser.resize(person.driver, browser.NARROW)
    for path in pages_of(mailer)[1:]:
        person.go(path)
        width = person.script("return document.documentElement.scrollWidth")
        assert width <= browser.NARROW[0], path
    person.driver.get_log("browser")  # the 404
    person.go()
    tab = person.find("nav a[href='/dashboard/subscribers']")
    assert tab.size["height"] >= 24
    tab.click()
    person.wait_to_see("Subscribers", "h1")


def test_in_the_dark_the_page_is_dark(person):
    person.go("/sign-in")
    shades = {}
    for scheme in ("light", "dark"):
        browser.prefer(person.driver, scheme)
        colour = person.script("return getComputedStyle(document.body).backgroundColor")
        shades[scheme] = sum(int(part) for part in colour.strip("rgb()").split(","))
    assert shades["dark"] < 150 < 600 < shades["light"]


def test_charts_tell_their_values_to_pointer_and_keyboard(person, history):
    person.sign_in(ROOT_KEY)
    box = person.find("#chart-flow .box")
    ActionChains(person.driver).move_to_element(box).perform()
    person.wait_for(lambda: "in: 10.0\nout: 5.0" in person.text("#chart-flow .tip"))
    person.script("document.querySelector('#chart-latency .box').focus()")
    person.press(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    person.wait_for(lambda: "100 ms" in person.script(
        "return document.querySelector('#chart-latency .said').textContent"
    ))  # fmt: skip
    person.click("#table-flow summary")
    assert "10.0\t5.0" in person.text("#table-flow")


def test_a_revoked_token_is_out_at_once(person, running, mailer):
    person.sign_in(mailer.token)
    running.web.call("DELETE", f"/api_tokens/{mailer.token}", ROOT_KEY)
    person.wait_for(lambda: person.path.startswith("/dashboard/sign-in"))


def test_without_redis_the_page_says_so_and_comes_back_by_itself(person, running):
    person.sign_in(ROOT_KEY)
    person.mark()
    running.redis.stop()
    try:
        person.wait_to_see("These numbers are old", "#offline")
        person.go()
        person.wait_to_see("Redis cannot be reached")
    finally:
        running.redis.start()
    person.wait_to_see("Overview")
    person.driver.get_log("browser")  # the 503s

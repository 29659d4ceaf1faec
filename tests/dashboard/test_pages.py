"""What the pages show, to whom, and what they never do."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from routemaster.domain.attempt import Attempt
from routemaster.store.series import MINUTE_MS, Entry, Flow
from routemaster.web import create_app
from tests.busses import event, follow, give_token, publish
from tests.conftest import ROOT_KEY
from tests.dashboard.visitor import Visitor

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}'
PAGES = (
    "", "/topics", "/subscribers", "/subscribers/mailer", "/workers",
    "/subscribers/mailer/pause", "/subscribers/mailer/resume", "/subscribers/mailer/replay",
)  # fmt: skip


@pytest.fixture
def busy(bus):
    """mailer and other follow what shop publishes; one delivery to mailer failed."""
    give_token(bus, "shop")
    follow(bus, "mailer", "orders", max=2, timeout=0)
    follow(bus, "other", "orders", timeout=0)
    publish(bus, "shop", "orders", json.dumps([event(n) for n in range(1, 4)]).encode())
    fail(bus, b"try later")
    return bus


def fail(bus, excerpt: bytes, error: str = "http_503") -> str:
    taken = bus.main.take("worker-1", "lease", 60_000, 10)
    for lease in taken.leases:
        mine = lease.batch.subscriber == "mailer"
        attempt = Attempt(
            lease.batch.lane, lease.bid, 1, len(lease.batch.events), 99, lease.batch.created_ms,
            taken.now_ms, taken.now_ms + 7, "failed", 503, error, "worker-1", 1, excerpt,
        )  # fmt: skip
        bus.main.nack(lease.job, lease.fence, 60_000, damage=2, attempt=attempt if mine else None)
    return next(str(one.bid) for one in taken.leases if one.batch.subscriber == "mailer")


@pytest.fixture
def mailer(busy, app) -> Visitor:
    signed_in = Visitor(app.test_client())
    signed_in.sign_in(give_token(busy, "mailer"))
    return signed_in


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_a_page(root, busy, path):
    response = root.get(path)
    assert response.status_code == 200
    assert response.content_type == "text/html; charset=utf-8"
    page = response.get_data(as_text=True)
    assert "<h1" in page and 'lang="en"' in page and "<title>" in page
    assert " style=" not in page and "<style" not in page and "onclick" not in page


def test_an_empty_bus_has_its_pages_too(root, alice):
    assert "Nobody has subscribed yet" in root.text("/subscribers")
    assert "There are no topics yet" in root.text("/topics")
    assert "No worker is running" in root.text("")
    assert "alice has no subscription" in alice.text("")
    assert "alice has no subscription" in alice.text("/subscribers")
    assert alice.get("/subscribers/alice").status_code == 404


def test_root_sees_everything(root, busy):
    assert "Waiting 6 events" in root.text("")
    text = root.text("/subscribers")
    assert "mailer" in text and "other" in text
    assert "orders shop 3" in root.text("/topics")
    text = root.text("/subscribers/mailer")
    assert "https://sub.example/" in text and "try later" in text
    assert "1 attempt, last failed (503)" in text and "worker-1" in text


def test_a_client_sees_its_own_and_no_others(mailer, busy):
    assert "Waiting 3 events" in mailer.text("")
    text = mailer.text("/subscribers")
    assert "mailer" in text and "other" not in text
    assert "other" not in mailer.text("/subscribers?q=other").replace("Find", "")
    assert "try later" in mailer.text("/subscribers/mailer")
    for path in ("/subscribers/other", "/subscribers/other/pause", "/subscribers/nobody"):
        assert mailer.get(path).status_code == 403
    assert mailer.get("/workers").status_code == 403
    assert "Workers" not in mailer.text("") and "Redis" not in mailer.text("")
    assert "Subscribers" not in mailer.text("/topics").split("Events a second")[1]


def test_a_client_changes_its_own_and_no_others(mailer, busy):
    token = mailer.form_token("/subscribers/mailer/pause")
    for verb in ("pause", "resume", "replay"):
        assert mailer.post(f"/subscribers/other/{verb}", {"form_token": token}).status_code == 403
    assert mailer.send("/subscribers/mailer/pause").status_code == 303
    states = [summary.state for summary in busy.subscribers.summaries(["mailer", "other"])]
    assert states == ["paused", "active"]


@pytest.mark.parametrize(
    ("verb", "state", "said"),
    [("pause", "paused", "Paused"), ("resume", "active", "Resumed"), ("replay", "active", "due")],
)
def test_actions(root, busy, caplog, verb, state, said):
    caplog.set_level("INFO")
    busy.subscribers.set_state("mailer", "active" if verb == "pause" else "paused")
    done = root.send(f"/subscribers/mailer/{verb}")
    assert done.location == f"/dashboard/subscribers/mailer?done={verb}"
    assert said in root.text(f"/subscribers/mailer?done={verb}")
    (summary,) = busy.subscribers.summaries(["mailer"])
    assert summary.state == state
    assert f"done action={verb} subscriber=mailer by=root" in caplog.text


def test_redelivering_makes_the_lane_due(root, busy):
    (operation, *_) = [
        one for one in busy.operations.recent("mailer", 5, busy.clock.now_ms()) if one.attempts
    ]
    path = f"/subscribers/mailer/operations/{operation.bid}/redeliver"
    assert path in root.get("/subscribers/mailer").get_data(as_text=True)
    assert busy.main.due() == 0
    done = root.send(path)
    assert done.location == "/dashboard/subscribers/mailer?done=redeliver"
    assert busy.main.due() == 1
    # Nobody reaches it by another subscriber's name.
    assert root.get(path.replace("mailer", "other")).status_code == 404


def test_what_was_delivered_cannot_be_redelivered(root, busy):
    busy.operations.hasten("mailer", "0")
    (lease,) = busy.main.take("w", "l2", 60_000, 1).leases
    done = Attempt("0", lease.bid, 2, 2, 9, 1, 1, 2, "delivered", 200, "", "w", 1)
    done = replace(done, finished_ms=busy.clock.now_ms())
    busy.main.ack(lease.job, lease.fence, lease.bid, attempt=done)
    path = f"/subscribers/mailer/operations/{lease.bid}/redeliver"
    assert path not in root.get("/subscribers/mailer").get_data(as_text=True)
    refused = root.send(path)
    assert refused.status_code == 409
    assert "publish them again" in refused.get_data(as_text=True)


def test_a_paused_subscriber_is_not_redelivered_to_by_half(root, busy):
    (operation, *_) = busy.operations.recent("mailer", 5, busy.clock.now_ms())
    path = f"/subscribers/mailer/operations/{operation.bid}/redeliver"
    token = root.form_token(path)
    busy.subscribers.set_state("mailer", "paused")
    refused = root.post(path, {"form_token": token})
    assert refused.status_code == 409
    assert "resume it" in refused.get_data(as_text=True)


def test_whatever_is_in_the_bus_is_shown_as_text(root, bus):
    give_token(bus, "shop")
    follow(bus, "mailer", "orders", timeout=0)
    facet = "<b>&'\"</b>"
    body = {**event(1), "url": "https://shop.example/<script>alert(3)</script>", "facet": facet}
    publish(bus, "shop", "orders", json.dumps(body).encode())
    fail(bus, EVIL.encode() + b"\xff\x00", error=EVIL)
    k = bus.keys
    bus.link.call("HSET", k.subscriber("mailer"), "callback", EVIL, "state", EVIL)
    bus.link.call("HSET", k.topic("orders"), "publisher", EVIL)
    bus.link.call("HSET", k.workers, EVIL, str(bus.clock.now_ms()))
    for path in PAGES:
        page = root.get(path).get_data(as_text=True)
        assert "<script>alert" not in page and "<img src=x" not in page, path
    assert "{{7*7}}" in root.text("/subscribers/mailer")
    assert "&lt;script&gt;alert(1)" in root.get("/subscribers/mailer").get_data(as_text=True)
    for path in (f"/topics?q={EVIL}", f"/subscribers?q={EVIL}&sort={EVIL}", f"/{EVIL}",
                 f"?window={EVIL}", f"/subscribers/mailer?status={EVIL}&done={EVIL}&page=-1",
                 f"/subscribers/{EVIL}", f"/sign-in?next={EVIL}"):  # fmt: skip
        page = root.get(path).get_data(as_text=True)
        assert "<script>alert" not in page and "<img src=x" not in page, path


@pytest.mark.parametrize(
    "row",
    [b"", b"\xc1", b"null", b'"x"', b"[]", b"{", b'{"t": "x", "url": 5, "type": []}',
     b'{"t": 99999999999999999}', b'{"t": -99999999999999}'],
)  # fmt: skip
def test_what_redis_holds_may_be_anything(root, busy, row):
    busy.link.call("HSET", busy.keys.topic("orders"), "last_event", row, "counter", 5)
    busy.link.call("DEL", busy.keys.series)
    busy.link.call("RPUSH", busy.keys.series, row)
    busy.link.call("HSET", busy.keys.counters, "events.delivered,subscriber=mailer", "x")
    busy.link.call("HSET", busy.keys.subscriber("mailer"), "health_points", "x")
    for path in ("", "/topics", "/subscribers", "/subscribers/mailer"):
        assert root.get(path).status_code == 200


def test_long_lists_come_in_pages(root, bus):
    bus.link.many(
        [("SADD", bus.keys.topics, f"t_{letters(n)}") for n in range(250)]
        + [("HSET", bus.keys.routes, "version", "1")]
    )
    assert "250 topics, page 1 of 3" in root.text("/topics")
    assert "page 3 of 3" in root.text("/topics?page=3")
    for page in ("0", "-1", "x", "٣", "1e9", "", "9" * 20):
        assert "page 1 of 3" in root.text(f"/topics?page={page}")
    assert "page 3 of 3" in root.text("/topics?page=999")
    assert "1 topics" in root.text("/topics?q=T_AAH_")


def letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:03}") + "_"


def test_sorting_by_backlog_and_by_health(root, busy):
    publish(busy, "shop", "orders", json.dumps(event(9)).encode())
    busy.link.call("HSET", busy.keys.event_gauges, "other", 99)
    order = [root.text(f"/subscribers?sort={key}") for key in ("waiting", "health", "nonsense")]
    places = [text.index("other") < text.index("mailer") for text in order]
    assert places == [True, False, False]


def test_a_part_leaves_out_what_changes_once_a_minute(root, busy):
    whole = root.get("").get_data(as_text=True)
    part = root.get("", headers={"X-Routemaster-Part": "now"}).get_data(as_text=True)
    assert 'id="chart-flow"' in whole and 'id="chart-flow"' not in part
    assert 'id="tile-queued"' in part
    assert len(part) < len(whole) / 2


def test_charts_have_their_values_as_a_table(root, busy):
    minute = busy.clock.now_ms() // MINUTE_MS
    busy.series.append(minute - 2, [Entry("", Flow(0), (0, 0, 1, 1, 1))])
    busy.series.append(minute - 1, [Entry("", Flow(1200, 600, 10, 0, 5000), (77, 3, 1, 1, 1))])
    text = root.text("").split("As a table", 1)[1]
    assert "20.0 10.0" in text  # in and out per second
    assert "500 ms" in text and "77" in text


def test_what_came_since_the_last_row_counts_too(root, busy):
    minute = busy.clock.now_ms() // MINUTE_MS
    busy.series.append(minute, [Entry("", Flow(), ()), Entry("mailer", Flow(), ())])
    for path in ("/subscribers/mailer", "/subscribers"):
        assert "0.0 %" in root.text(path)  # the only delivery so far failed
    busy.series.append(minute + 1, [Entry("", Flow(), ()), Entry("mailer", Flow(failed=1), ())])
    busy.link.call("DEL", busy.keys.series_prefix + "mailer")
    assert "0.0 %" not in root.text("/subscribers/mailer")


def test_without_redis_the_page_says_so_and_recovers(own_redis_server, make_bus, settings):
    bus = make_bus(replace(settings, redis_url=own_redis_server.socket_url, redis_timeout_s=2.0))
    visitor = Visitor(create_app(bus).test_client())
    visitor.sign_in(ROOT_KEY)
    assert visitor.is_in
    own_redis_server.stop()
    for path in ("", "/topics", "/subscribers", "/workers", "/sign-in"):
        response = visitor.get(path)
        if path == "/sign-in":
            continue
        assert response.status_code == 503
        assert "Redis cannot be reached" in response.get_data(as_text=True)
        assert response.headers["Retry-After"] == "1"
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    own_redis_server.start()
    assert visitor.is_in


def test_it_can_be_turned_off(make_bus, settings):
    off = create_app(make_bus(replace(settings, dashboard=False))).test_client()
    assert off.get("/dashboard").status_code == 404
    assert off.get("/dashboard/sign-in").status_code == 404


def test_a_bug_shows_nothing_of_itself(root, monkeypatch, caplog):
    def broken(*_, **__):
        raise ZeroDivisionError("a secret detail")

    monkeypatch.setattr("routemaster.store.sessions.SessionStore.seen", broken)
    response = root.get("")
    assert response.status_code == 500
    assert "secret detail" not in response.get_data(as_text=True)
    assert "ZeroDivisionError" in caplog.text

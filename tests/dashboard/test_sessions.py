"""Who is signed in, for how long, and how it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from routemaster.clients import remove_token
from routemaster.store.sessions import IDLE_MS, LIFE_MS, MINUTE_MS, MOST_SESSIONS, TRIES, TRIES_MS
from routemaster.web import create_app
from tests.busses import give_token, token_of
from tests.conftest import ROOT_KEY
from tests.dashboard.visitor import Visitor
from tests.web.calls import stored_text

NOW = 1_800_000_000_000


@pytest.mark.parametrize("token", ["", "wrong", token_of("alice"), "ä", "x" * 300], ids=ascii)
def test_an_unknown_token_opens_nothing(visitor, token):
    response = visitor.sign_in(token)
    assert response.status_code == 401
    assert "neither the root key nor" in response.get_data(as_text=True)
    assert visitor.cookie() is None
    assert not visitor.is_in


def test_who_is_not_signed_in_is_asked_to_and_then_sees_what_was_asked_for(visitor, bus):
    asked = visitor.get("/topics?sort=events")
    assert asked.status_code == 303
    assert asked.location == "/dashboard/sign-in?next=/dashboard/topics%3Fsort%3Devents"
    then = visitor.sign_in(give_token(bus, "alice"), next="/dashboard/topics?sort=events")
    assert (then.status_code, then.location) == (303, "/dashboard/topics?sort=events")


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/", "//evil.example", "/\\evil.example", "/topics/orders",
        "/dashboardevil", "/dashboard/\\..\\..", "/dashboard/\r\nSet-Cookie: a=b", "javascript:1",
    ],
)  # fmt: skip
def test_signing_in_leads_nowhere_else(visitor, elsewhere):
    assert visitor.sign_in(ROOT_KEY, next=elsewhere).location == "/dashboard"


def test_the_cookie_holds_nothing_and_is_kept_from_everybody(visitor, bus):
    response = visitor.sign_in(give_token(bus, "alice"))
    cookie = next(c for c in response.headers.getlist("Set-Cookie") if "session=" in c)
    assert {"HttpOnly", "SameSite=Strict", "Path=/", f"Max-Age={LIFE_MS // 1000}"} <= set(
        cookie.split("; ")
    )
    assert "alice" not in cookie and "0123456789abcdef" not in cookie


def test_over_https_the_cookie_never_travels_in_the_clear(make_bus, settings):
    bus = make_bus(replace(settings, force_ssl=True))
    visitor = Visitor(create_app(bus).test_client(), **{"wsgi.url_scheme": "https"})
    response = visitor.sign_in(ROOT_KEY)
    cookie = next(c for c in response.headers.getlist("Set-Cookie") if "session=" in c)
    assert cookie.startswith("__Host-routemaster_session=")
    assert "Secure" in cookie.split("; ")
    assert visitor.is_in
    assert "Strict-Transport-Security" in response.headers


def test_redis_knows_no_id_no_token_and_no_address(visitor, redis_server, alice, root):
    stored = stored_text(redis_server)
    for secret in (alice.cookie(), root.cookie(), token_of("alice"), ROOT_KEY, "127.0.0.1"):
        assert secret.encode() not in stored


def test_a_session_works_in_every_web_process_and_over_restarts(alice, make_bus, settings):
    other = create_app(make_bus(settings)).test_client()
    other.set_cookie("routemaster_session", alice.cookie())
    assert Visitor(other).is_in


def test_a_new_root_key_ends_all_sessions(alice, root, make_bus, settings):
    bus = make_bus(replace(settings, root_key="another-root-key-of-the-tests-9876543210"))
    for signed_in in (alice, root):
        other = create_app(bus).test_client()
        other.set_cookie("routemaster_session", signed_in.cookie())
        assert not Visitor(other).is_in


def test_a_revoked_tokens_session_ends_at_once(alice, bus):
    assert alice.is_in
    remove_token(bus, token_of("alice"))
    assert not alice.is_in


def test_another_token_of_the_same_client_goes_on(alice, bus, app):
    second = "alice--another-0123456789"
    bus.tokens.add(second, next(iter(bus.directory.fresh().clients.values())))
    other = Visitor(app.test_client())
    other.sign_in(second)
    remove_token(bus, token_of("alice"))
    assert (alice.is_in, other.is_in) == (False, True)


def test_signing_out_ends_the_session_and_not_only_the_cookie(alice, app):
    stolen = alice.cookie()
    response = alice.sign_out()
    assert (response.status_code, response.location) == (303, "/dashboard/sign-in")
    assert alice.cookie() is None
    alice.http.set_cookie("routemaster_session", stolen)
    assert not alice.is_in


def test_signing_in_never_takes_over_an_id_that_somebody_planted(visitor):
    planted = "A" * 43
    visitor.http.set_cookie("routemaster_session", planted)
    assert visitor.sign_in(ROOT_KEY).status_code == 303
    assert visitor.cookie() not in (None, planted)


@pytest.mark.parametrize("cookie", ["", "x", "A" * 42, "A" * 43, "é" * 43, "A" * 4000, "' OR 1"])
def test_a_cookie_of_no_session_is_no_session(visitor, cookie):
    visitor.http.set_cookie("routemaster_session", cookie)
    assert visitor.get().status_code == 303


def test_a_session_ends_twelve_hours_after_it_began(bus):
    bus.sessions.open("s", "token", NOW)
    for minutes in range(0, LIFE_MS // MINUTE_MS, 30):
        assert bus.sessions.seen("s", NOW + minutes * MINUTE_MS) == "token"
    assert bus.sessions.seen("s", NOW + LIFE_MS - 1) == "token"
    assert bus.sessions.seen("s", NOW + LIFE_MS) == ""
    assert bus.sessions.seen("s", NOW + LIFE_MS - 1) == ""  # and for good


def test_a_session_ends_an_hour_after_it_was_last_used(bus):
    bus.sessions.open("s", "token", NOW)
    assert bus.sessions.seen("s", NOW + IDLE_MS - 1) == "token"
    assert bus.sessions.seen("s", NOW + 2 * IDLE_MS - 2) == "token"
    assert bus.sessions.seen("s", NOW + 3 * IDLE_MS - 2) == ""


def test_a_page_that_refreshes_itself_does_not_write_each_time(bus):
    bus.sessions.open("s", "token", NOW)
    bus.sessions.seen("s", NOW + MINUTE_MS - 1)
    assert bus.link.call("HGET", bus.keys.sessions, "s").split()[1] == b"%d" % NOW


def test_there_are_so_many_sessions_and_the_last_used_stay(bus):
    rows = [word for n in range(MOST_SESSIONS) for word in (f"s{n}", f"{NOW + n} {NOW + n} token")]
    bus.link.call("HSET", bus.keys.sessions, *rows)
    bus.sessions.open("new", "token", NOW + MOST_SESSIONS)
    assert bus.sessions.seen("s0", NOW + MOST_SESSIONS) == ""
    assert bus.sessions.seen("s1", NOW + MOST_SESSIONS) == "token"
    bus.sessions.open("late", "token", NOW + LIFE_MS + MOST_SESSIONS)
    assert bus.link.call("HLEN", bus.keys.sessions) == 1


def test_what_redis_holds_there_may_be_anything(bus):
    for row in ("", "x", "1 2", "1 2 3 4", f"{NOW} x y", "-5 1 t"):
        bus.link.call("HSET", bus.keys.sessions, "s", row)
        assert bus.sessions.seen("s", NOW) == ""


def test_guessing_is_slowed_down_also_for_who_guesses_right_then(app, visitor):
    for _ in range(TRIES):
        assert visitor.sign_in("wrong").status_code == 401
    refused = visitor.sign_in(ROOT_KEY)
    assert refused.status_code == 429
    assert 0 < int(refused.headers["Retry-After"]) <= TRIES_MS // 1000
    elsewhere = Visitor(app.test_client(), REMOTE_ADDR="192.0.2.7")
    assert elsewhere.sign_in(ROOT_KEY).status_code == 303


def test_tries_are_forgotten_after_five_minutes(bus):
    for _ in range(TRIES):
        assert bus.sessions.try_sign_in("b", NOW) == 0
    assert bus.sessions.try_sign_in("b", NOW + 1) == TRIES_MS - 1
    assert bus.sessions.try_sign_in("b", NOW + TRIES_MS) == 0
    assert bus.sessions.try_sign_in("other", NOW + 1) == 0


def test_behind_a_proxy_of_ours_its_users_are_told_apart(make_bus, settings):
    from routemaster.setting_types import networks

    bus = make_bus(replace(settings, trusted_proxies=networks("10.0.0.0/8")))
    http = create_app(bus).test_client()
    http.environ_base["REMOTE_ADDR"] = "10.0.0.1"
    for _ in range(TRIES + 1):
        refused = Visitor(http, HTTP_X_FORWARDED_FOR="1.1.1.1, 203.0.113.5").sign_in("wrong")
    assert refused.status_code == 429
    # The first in the list is anybody's word, and changes nothing.
    assert (
        Visitor(http, HTTP_X_FORWARDED_FOR="9.9.9.9, 203.0.113.5").sign_in("x").status_code == 429
    )
    assert Visitor(http, HTTP_X_FORWARDED_FOR="203.0.113.6").sign_in("x").status_code == 401


def test_a_full_redis_can_be_signed_in_to(visitor, redis_server):
    with redis_server.client() as client:
        client.config_set("maxmemory", "1")
        assert visitor.sign_in(ROOT_KEY).status_code == 303
        assert visitor.is_in


def test_no_token_is_logged(visitor, caplog, bus):
    caplog.set_level("DEBUG")
    visitor.sign_in("a-secret-that-is-wrong")
    visitor.sign_in(give_token(bus, "alice"))
    assert "sign-in refused" in caplog.text
    assert "a-secret-that-is-wrong" not in caplog.text and "0123456789abcdef" not in caplog.text

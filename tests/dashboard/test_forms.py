"""Nothing is done that the signed-in person did not ask for, and nothing is shown elsewhere."""

from __future__ import annotations

import pytest

from tests.busses import follow, give_token
from tests.conftest import ROOT_KEY
from tests.dashboard.visitor import FROM_US, Visitor

PAUSE = "/subscribers/mailer/pause"


@pytest.fixture
def mailer(bus):
    give_token(bus, "mailer")
    follow(bus, "mailer", "orders")


def state(bus) -> str:
    (summary,) = bus.subscribers.summaries(["mailer"])
    return str(summary.state)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "localhost"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_form_sent_from_elsewhere_does_nothing(root, bus, mailer, headers):
    token = root.form_token(PAUSE)
    response = root.post(PAUSE, {"form_token": token}, headers=headers)
    assert response.status_code == 403
    assert state(bus) == "active"


@pytest.mark.parametrize("headers", [FROM_US, {"Origin": "http://localhost"}])
def test_a_form_of_ours_is_taken(root, bus, mailer, headers):
    token = root.form_token(PAUSE)
    response = root.post(PAUSE, {"form_token": token}, headers=headers)
    assert (response.status_code, state(bus)) == (303, "paused")


def test_a_form_without_token_or_with_another_persons_does_nothing(root, alice, bus, mailer):
    for fields in (
        {}, {"form_token": ""}, {"form_token": "x"}, {"form_token": alice.form_token("")},
    ):  # fmt: skip
        assert root.post(PAUSE, fields).status_code == 403
        assert root.post("/sign-out", fields).status_code == 403
    assert state(bus) == "active" and root.is_in


def test_nobody_is_signed_in_by_somebody_elses_page(app, visitor):
    other = Visitor(app.test_client()).form_token("/sign-in")
    for fields, headers in (
        ({"token": ROOT_KEY}, FROM_US),
        ({"token": ROOT_KEY, "form_token": other}, FROM_US),
        ({"token": ROOT_KEY, "form_token": visitor.form_token("/sign-in")}, {}),
    ):
        assert visitor.post("/sign-in", fields, headers=headers).status_code == 403
    assert not visitor.is_in


def test_asking_changes_nothing(root, bus, mailer):
    for verb in ("pause", "resume", "replay"):
        assert root.get(f"/subscribers/mailer/{verb}").status_code == 200
    assert state(bus) == "active"


@pytest.mark.parametrize("path", ["/sign-in", "", "/subscribers/mailer/pause", "/nothing"])
def test_every_answer_tells_browsers_to_be_strict(root, visitor, mailer, path):
    for who in (root, visitor):
        headers = who.get(path).headers
        assert headers["Content-Security-Policy"].startswith(
            "default-src 'none'; script-src 'self'"
        )
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"


def test_style_and_script_are_kept_by_browsers(visitor):
    page = visitor.get("/sign-in").get_data(as_text=True)
    for name, kind in (("dashboard.css", "text/css"), ("dashboard.js", "text/javascript")):
        path = page.split(f"/dashboard/static/{name}?", 1)[1].split('"')[0]
        response = visitor.get(f"/static/{name}?{path}")
        assert response.content_type.startswith(kind)
        assert "immutable" in response.headers["Cache-Control"]
    for name in ("../pages.py", "nothing.js", "%2e%2e/pages.py", ""):
        assert visitor.get(f"/static/{name}").status_code == 404


@pytest.mark.parametrize("field", ["token", "next", "form_token"])
def test_a_huge_form_is_refused(visitor, field):
    fields = {"form_token": visitor.form_token("/sign-in"), field: "x" * 1_000_000}
    response = visitor.post("/sign-in", fields)
    assert response.status_code == 413
    assert "text/html" in response.content_type


def test_another_method_is_answered_as_such(root):
    assert root.http.delete("/dashboard").status_code == 405
    assert root.http.post("/dashboard/topics", headers=FROM_US).status_code == 405

"""Every route for every caller. A new route without a row here fails."""

from __future__ import annotations

import pytest

from routemaster.settings import Settings
from routemaster.web import create_app
from tests.busses import give_token, token_of
from tests.conftest import ROOT_KEY
from tests.web.calls import EVENT, SUBSCRIPTION, Caller

CALLERS = ("nobody", "unknown", "revoked", "other", "owner", "root")
# What nobody, an unknown and a revoked token get, whatever they ask for.
SHUT = (401, 401, 401)

ROWS: dict[str, tuple[int, ...]] = {
    "GET /topics": (*SHUT, 200, 200, 200),
    "POST /topics/<name>": (*SHUT, 403, 204, 204),
    "GET /topics/<name>/stream": (*SHUT, 200, 200, 200),
    "DELETE /topics/<name>": (*SHUT, 403, 204, 204),
    "DELETE /topic/<name>": (*SHUT, 403, 204, 204),
    "POST /subscription": (*SHUT, 204, 204, 403),
    "POST /subscriber": (*SHUT, 204, 204, 403),
    "DELETE /subscription": (*SHUT, 404, 204, 403),
    "DELETE /subscriber": (*SHUT, 404, 204, 403),
    "DELETE /subscription/topics/<topic>": (*SHUT, 404, 204, 403),
    "DELETE /subscriber/topics/<topic>": (*SHUT, 404, 204, 403),
    "GET /subscriptions": (*SHUT, 200, 200, 200),
    "GET /subscribers": (*SHUT, 200, 200, 200),
    "DELETE /subscriptions/<name>": (*SHUT, 403, 204, 204),
    "DELETE /subscribers/<name>": (*SHUT, 403, 204, 204),
    "POST /subscription/pause": (*SHUT, 404, 204, 403),
    "POST /subscriber/pause": (*SHUT, 404, 204, 403),
    "POST /subscription/resume": (*SHUT, 404, 204, 403),
    "POST /subscriber/resume": (*SHUT, 404, 204, 403),
    "POST /subscriptions/<name>/pause": (*SHUT, 403, 204, 204),
    "POST /subscribers/<name>/pause": (*SHUT, 403, 204, 204),
    "POST /subscriptions/<name>/resume": (*SHUT, 403, 204, 204),
    "POST /subscribers/<name>/resume": (*SHUT, 403, 204, 204),
    "GET /subscription/secret": (*SHUT, 404, 200, 403),
    "GET /subscriber/secret": (*SHUT, 404, 200, 403),
    "POST /subscription/secret": (*SHUT, 404, 200, 403),
    "POST /subscriber/secret": (*SHUT, 404, 200, 403),
    # The owner's subscription has a callback, and nothing is leased.
    "GET /subscription/batch": (*SHUT, 404, 409, 403),
    "GET /subscriber/batch": (*SHUT, 404, 409, 403),
    "DELETE /subscription/batch/<bid>": (*SHUT, 409, 409, 403),
    "DELETE /subscriber/batch/<bid>": (*SHUT, 409, 409, 403),
    "POST /subscription/batch/<bid>/refuse": (*SHUT, 409, 409, 403),
    "POST /subscriber/batch/<bid>/refuse": (*SHUT, 409, 409, 403),
    "POST /subscription/batch/<bid>/renew": (*SHUT, 409, 409, 403),
    "POST /subscriber/batch/<bid>/renew": (*SHUT, 409, 409, 403),
    "GET /operations/<bid>": (*SHUT, 404, 200, 200),
    "POST /operations/<bid>/redeliver": (*SHUT, 404, 202, 202),
    "GET /subscription/operations": (*SHUT, 200, 200, 400),
    "GET /subscriber/operations": (*SHUT, 200, 200, 400),
    "GET /api_tokens": (*SHUT, 403, 403, 200),
    "POST /api_tokens": (*SHUT, 403, 403, 201),
    "DELETE /api_tokens/<token>": (*SHUT, 403, 403, 204),
    "GET /pulse": (*SHUT, 204, 204, 204),
    "GET /pulse/scaling": (*SHUT, 204, 204, 204),
    "GET /metrics": (*SHUT, 403, 403, 200),
    "GET /health": (200,) * 6,
    "GET /health/ping": (200,) * 6,
    "GET /openapi.json": (200,) * 6,
    "GET /docs": (200,) * 6,
    "GET /docs/style.css": (200,) * 6,
}
DASHBOARD_ACTIONS = (
    "/subscribers/<name>/<any('pause','resume','replay'):verb>",
    "/subscribers/<name>/operations/<bid>/redeliver",
)
# The dashboard knows a session, and no Authorization: whoever comes without one is sent to sign in.
DASHBOARD = (
    "",
    "/",
    "/topics",
    "/subscribers",
    "/subscribers/<name>",
    "/stream",
    "/topics/<name>/events",
    "/workers",
)
ROWS |= {f"GET /dashboard{path}": (303,) * 6 for path in (*DASHBOARD, *DASHBOARD_ACTIONS)}
ROWS |= {f"POST /dashboard{path}": (303,) * 6 for path in DASHBOARD_ACTIONS}
ROWS |= {
    "GET /dashboard/sign-in": (200,) * 6,
    "POST /dashboard/sign-in": (403,) * 6,
    "POST /dashboard/sign-out": (303,) * 6,
    "GET /dashboard/static/<file>": (200,) * 6,
    "GET /dashboard/<path:_>": (404,) * 6,
}
# Asking for the headers only is asking.
ROWS |= {f"HEAD {row.removeprefix('GET ')}": ROWS[row] for row in ROWS if row.startswith("GET ")}
# But taking nothing.
ROWS |= {f"HEAD /{word}/batch": (*SHUT, 204, 204, 403) for word in ("subscription", "subscriber")}

# To its owner, and nowhere else.
SHOWN_SECRETS = ("GET /subscription/secret", "GET /subscriber/secret")

BODIES: dict[str, object] = {
    "/topics/<name>": EVENT,
    "/subscription": SUBSCRIPTION,
    "/subscriber": SUBSCRIPTION,
    "/api_tokens": {"name": "newcomer"},
}
PARTS = {
    "/topics/<name>": "/topics/orders",
    "/topics/<name>/stream": "/topics/orders/stream",
    "/topic/<name>": "/topic/orders",
    "/subscription/topics/<topic>": "/subscription/topics/orders",
    "/subscriber/topics/<topic>": "/subscriber/topics/orders",
    "/subscriptions/<name>": "/subscriptions/owner",
    "/subscribers/<name>": "/subscribers/owner",
    "/subscriptions/<name>/pause": "/subscriptions/owner/pause",
    "/subscribers/<name>/pause": "/subscribers/owner/pause",
    "/subscriptions/<name>/resume": "/subscriptions/owner/resume",
    "/subscribers/<name>/resume": "/subscribers/owner/resume",
    "/api_tokens/<token>": "/api_tokens/whatever",
    "/dashboard/topics/<name>/events": "/dashboard/topics/orders/events",
    "/dashboard/subscribers/<name>": "/dashboard/subscribers/owner",
    "/dashboard" + DASHBOARD_ACTIONS[0]: "/dashboard/subscribers/owner/pause",
    "/dashboard" + DASHBOARD_ACTIONS[1]: "/dashboard/subscribers/owner/operations/<bid>/redeliver",
    "/dashboard/static/<file>": "/dashboard/static/dashboard.js",
    "/dashboard/<path:_>": "/dashboard/nothing/here",
}
CASES = [
    pytest.param(row, caller, status, id=f"{row}-{caller}")
    for row, statuses in ROWS.items()
    for caller, status in zip(CALLERS, statuses, strict=True)
]


def test_every_route_has_a_row(make_bus):
    app = create_app(make_bus(Settings.from_env({"ROUTEMASTER_ROOT_KEY": ROOT_KEY})))
    routes = {
        f"{method} {rule.rule}"
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"OPTIONS"}
    }
    assert routes == ROWS.keys()


@pytest.fixture
def callers(bus, app, root) -> dict[str, Caller]:
    made = {
        "nobody": Caller(app.test_client()),
        "unknown": Caller(app.test_client(), "unknown--0123456789abcdef"),
        "root": root,
    }
    for name in ("revoked", "other", "owner"):
        made[name] = Caller(app.test_client(), give_token(bus, name))
    assert made["owner"].publish("orders", EVENT).status_code == 204
    assert made["owner"].follow("orders").status_code == 204
    assert made["owner"].publish("orders", EVENT).status_code == 204
    # Known to the web process as good, until a moment ago.
    assert made["revoked"].get("/topics").status_code == 200
    assert root.delete(f"/api_tokens/{token_of('revoked')}").status_code == 204
    return made


@pytest.mark.parametrize(("row", "caller", "status"), CASES)
def test_who_may_do_what(bus, callers, caplog, row, caller, status):
    signing = bus.subscribers.secret("owner")
    method, _, rule = row.partition(" ")
    body = BODIES.get(rule) if method == "POST" else None
    (queued,) = bus.operations.recent("owner", 1, bus.clock.now_ms())
    path = PARTS.get(rule, rule).replace("<bid>", queued.bid)
    response = callers[caller].call(method, path, body)
    assert response.status_code == status
    if status == 401:
        assert response.headers.getlist("WWW-Authenticate")
    if status >= 400 and method != "HEAD" and not rule.startswith("/dashboard"):
        assert response.get_json()["error"]
    shown = response.get_data(as_text=True) + str(response.headers) + caplog.text
    secrets = [ROOT_KEY, "secret-uuid", *(token_of(n) for n in ("revoked", "other", "owner"))]
    assert not [secret for secret in secrets if secret in shown]
    assert signing not in caplog.text
    assert (signing in shown) == (row in SHOWN_SECRETS and caller == "owner")


def test_a_new_token_is_shown_to_its_maker_and_never_again(root, caplog):
    made = root.post("/api_tokens", {"name": "newcomer"})
    token = made.get_json()["token"]
    listed = root.get("/api_tokens").get_data(as_text=True)
    root.delete(f"/api_tokens/{token}")
    assert token not in listed + caplog.text


def test_asking_which_methods_there_are_needs_no_token_and_changes_nothing(nobody):
    response = nobody.call("OPTIONS", "/api_tokens")
    assert response.status_code == 200
    assert {m.strip() for m in response.headers["Allow"].split(",")} == {
        "GET", "HEAD", "POST", "OPTIONS",
    }  # fmt: skip
    assert response.get_data() == b""

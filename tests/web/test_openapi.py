"""The API's description is the API: every example of it works, on the bus that it describes."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis

from routemaster.web.openapi.operations import ALL, NOBODY, ROOT, Operation
from tests.busses import give_token
from tests.conftest import ROOT_KEY
from tests.web.calls import EVENT, SUBSCRIPTION, Caller, basic

PULLING = {"topics": ["orders"], "timeout": 0}
ROWS = [
    pytest.param(operation, path, id=f"{operation.method} {path}")
    for operation in ALL
    for path in operation.paths
]


@pytest.fixture
def callers(bus, app) -> dict[str, Caller]:
    made = {name: Caller(app.test_client(), give_token(bus, name)) for name in ("shop", "mailer")}
    return {**made, ROOT: Caller(app.test_client(), ROOT_KEY), NOBODY: Caller(app.test_client())}


def prepare(bus, callers: dict[str, Caller], path: str) -> str:
    """A shop's order waits for the mailer; returns the batch's id."""
    body = PULLING if "/batch" in path else {**SUBSCRIPTION, "topics": ["orders", "email_*"]}
    assert callers["mailer"].post("/subscription", body).status_code == 204
    assert callers["shop"].publish("orders", EVENT).status_code == 204
    if "/batch/{bid}" in path:
        return str(callers["mailer"].get("/subscription/batch").headers["webhook-id"])
    return str(bus.operations.recent("mailer", 1, bus.clock.now_ms())[0].bid)


def who(operation: Operation) -> str:
    if operation.callers in (ROOT, NOBODY):
        return operation.callers
    return "shop" if operation.group == "Topics" else "mailer"


@pytest.mark.parametrize(("operation", "path"), ROWS)
def test_every_example_works_and_is_answered_as_described(bus, app, callers, operation, path):
    bid = prepare(bus, callers, path)
    described: Any = schemathesis.openapi.from_wsgi("/openapi.json", app)
    given = {p.name: p.example for p in operation.parameters if p.where == "path"}
    query = {p.name: p.example for p in operation.parameters if p.where == "query" and p.example}
    token = callers[who(operation)].token
    body = {"body": operation.example, "media_type": "application/json"} if operation.body else {}
    case = described[path][operation.method.upper()].Case(
        path_parameters={**given, "bid": bid} if "{bid}" in path else given,
        query=query,
        headers={"Authorization": basic(token)} if token else {},
        **body,
    )
    assert case.call_and_validate().status_code < 300


def test_docs_is_one_page_without_script_and_shows_every_operation(nobody):
    page = nobody.get("/docs")
    text = page.get_data(as_text=True)
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "<script" not in text and 'src="' not in text and 'href="http' not in text
    for operation in ALL:
        assert [path for path in operation.paths if f"<code>{path}</code>" not in text] == []
    assert nobody.get("/docs/style.css").content_type == "text/css; charset=utf-8"

"""Whatever can be made of the API's description is sent to a running bus, valid and not."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from routemaster.web.openapi.operations import ALL, NOBODY, ROOT
from tests.conftest import ROOT_KEY
from tests.web.calls import basic

CHECKS = [
    not_a_server_error, status_code_conformance, content_type_conformance,
    response_headers_conformance, response_schema_conformance, negative_data_rejection,
]  # fmt: skip
EXAMPLES = 12
MOST_QUERY = 500
# A stream has no end: test_streams.py reads them.
OPERATIONS = [
    (operation, operation.paths[0]) for operation in ALL if "/stream" not in operation.paths[0]
]


@pytest.fixture(scope="module")
def described(harmed_bus) -> Any:
    """A bus without workers: nobody dials what comes up as a callback."""
    return schemathesis.openapi.from_url(f"{harmed_bus.web.url}/openapi.json")


@pytest.fixture(scope="module")
def token(harmed_bus) -> str:
    return str(harmed_bus.client().token)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "path"), OPERATIONS, ids=[f"{op.method} {path}" for op, path in OPERATIONS]
)
def test_no_input_surprises_the_bus(described, token, operation, path):
    target = described[path][operation.method.upper()]
    credential = ROOT_KEY if operation.callers == ROOT else token
    modes = list(schemathesis.GenerationMode)
    if operation.callers == NOBODY:  # takes nothing: nothing can be wrong with it
        modes.remove(schemathesis.GenerationMode.NEGATIVE)

    @given(data=st.data())
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def send(data):
        for mode in modes:
            case = data.draw(target.as_strategy(generation_mode=mode))
            if operation.callers != NOBODY:
                case.headers = {**(case.headers or {}), "Authorization": basic(credential)}
            if str((case.query or {}).get("wait", "")).isdigit():
                case.query["wait"] = 0  # waiting is tested elsewhere
            # What HTTP itself refuses (414, 431) is no operation's answer.
            assume(len(str(case.query)) < MOST_QUERY)
            case.call_and_validate(checks=CHECKS, timeout=20)

    send()

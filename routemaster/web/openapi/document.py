"""The table as an OpenAPI 3.1 document."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from routemaster import __version__
from routemaster.settings import Settings
from routemaster.web.openapi.operations import ALL, NOBODY, Answer, Operation, Parameter
from routemaster.web.openapi.schemas import all_schemas, ref

ABOUT = """An event bus over HTTP. Publishers POST small events to topics; subscribers register a \
callback, or pull, and get ordered batches.

Authentication: HTTP Basic with the token as user name (the password is ignored), or Bearer; \
Digest where it is switched on. An error is JSON, and nothing of its request was stored."""
UNAUTHENTICATED = Answer(
    "no token, or an unknown one", ref("Error"), headers={"WWW-Authenticate": "how to give one"}
)
UNAVAILABLE = Answer(
    "Redis is away, full or read-only; nothing was stored", ref("Error"),
    headers={"Retry-After": "seconds"},
)  # fmt: skip


def document(settings: Settings) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for operation in ALL:
        for place, path in enumerate(operation.paths):
            paths.setdefault(path, {})[operation.method] = described(operation, path, place)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Routemaster", "version": __version__, "description": ABOUT,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(op.group for op in ALL)],
        "paths": paths,
        "components": {"schemas": all_schemas(settings), "securitySchemes": schemes(settings)},
    }  # fmt: skip


def schemes(settings: Settings) -> dict[str, Any]:
    found: dict[str, Any] = {
        "basic": {"type": "http", "scheme": "basic", "description": "user name = token"},
        "bearer": {"type": "http", "scheme": "bearer"},
    }
    if settings.digest_auth:
        found["digest"] = {"type": "http", "scheme": "digest", "description": "RFC 7616"}
    return found


def described(operation: Operation, path: str, place: int) -> dict[str, Any]:
    answers = dict(operation.answers)
    if operation.callers != NOBODY:
        answers = {**answers, 401: UNAUTHENTICATED, 503: UNAVAILABLE}
    made: dict[str, Any] = {
        "operationId": operation_id(operation.method, path),
        "tags": [operation.group],
        "summary": operation.summary,
        "description": f"Who: {operation.callers}."
        + (f" Another spelling of `{operation.paths[0]}`." if place else ""),
        "responses": {str(status): answered(status, answers[status]) for status in sorted(answers)},
        "security": [] if operation.callers == NOBODY else [{"basic": []}, {"bearer": []}],
    }
    if operation.parameters:
        made["parameters"] = [parameter(each) for each in operation.parameters]
    if operation.body:
        made["requestBody"] = request_body(operation)
    return made


def operation_id(method: str, path: str) -> str:
    words = path.replace("{", "").replace("}", "").replace(".", "_").strip("/").replace("/", "_")
    return f"{method}_{words}"


def parameter(given: Parameter) -> dict[str, Any]:
    made = {
        "name": given.name, "in": given.where, "required": given.where == "path",
        "schema": given.schema, "description": given.meaning,
    }  # fmt: skip
    return made if given.example is None else {**made, "example": given.example}


def request_body(operation: Operation) -> dict[str, Any]:
    first, *others = operation.body_types
    content: dict[str, Any] = {first: {"schema": operation.body, "example": operation.example}}
    for kind in others:  # one a line: OpenAPI has no words for it
        content[kind] = {"schema": {"type": "string", "description": "one event a line"}}
    return {"required": operation.body_required, "content": content}


def answered(status: int, answer: Answer) -> dict[str, Any]:
    made: dict[str, Any] = {"description": f"{HTTPStatus(status).phrase}: {answer.meaning}"}
    if answer.headers:
        made["headers"] = {
            name: {"description": meaning, "schema": {"type": "string"}}
            for name, meaning in answer.headers.items()
        }
    if answer.schema is not None:
        shown: dict[str, Any] = {"schema": answer.schema}
        if answer.example is not None:
            shown["example"] = answer.example
        made["content"] = {answer.content_type: shown}
    return made

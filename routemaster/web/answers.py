from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from flask import Response, request
from werkzeug.exceptions import RequestEntityTooLarge

from routemaster.domain.json_body import decode_json
from routemaster.errors import InvalidInput, UnsupportedType

SHORT = "must be as long as Content-Length says"


def as_json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, content_type="application/json")


def nothing() -> Response:
    return Response(status=204)


def read_body() -> bytes:
    """All of it, or an error. Not request.get_data(), which hands over what came before a
    connection broke off, and the beginning of a chunked body that is too long: half of a bulk."""
    announced, most = request.content_length, request.max_content_length or 0
    if announced is not None and announced > most:
        raise RequestEntityTooLarge
    body = read(request.environ, most + 1 if announced is None else announced)
    if len(body) > most:
        raise RequestEntityTooLarge
    if announced is not None and len(body) < announced:
        raise InvalidInput("body", SHORT)
    return body


def read(environ: Mapping[str, Any], length: int) -> bytes:
    try:
        body: bytes = environ["wsgi.input"].read(length)
    except Exception:  # each server has its own classes for chunks that are none
        raise InvalidInput("body", "could not be read to its end") from None
    return body


def content_type(environ: Mapping[str, Any]) -> str:
    """The Go client sends none, and JSON. A browser can be made to send none as well, with its
    user's stored credentials; it gives itself away by headers that no page can remove."""
    given: str = environ.get("CONTENT_TYPE", "")
    is_browser = "HTTP_ORIGIN" in environ or "HTTP_SEC_FETCH_SITE" in environ
    return given if given or is_browser else "application/json"


def json_body() -> object:
    kind = content_type(request.environ).partition(";")[0].strip().lower()
    if kind != "application/json":
        raise UnsupportedType("Content-Type", "must be application/json")
    return decode_json(read_body())


def json_object(known: set[str]) -> dict[str, object]:
    body = json_body()
    if not isinstance(body, dict):
        raise InvalidInput("body", "must be a JSON object")
    for name in body:
        if name not in known:
            raise InvalidInput(str(name)[:64], "is not a field of this request")
    return body

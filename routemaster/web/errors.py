"""Every error becomes JSON `{"error", "detail"}` here, by one table from class to status."""

from __future__ import annotations

import logging

from flask import Flask, Response
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge

from routemaster import errors
from routemaster.digest_auth import StaleNonce
from routemaster.identity import Authenticator
from routemaster.web.answers import as_json

STATUS: dict[type[errors.RoutemasterError], int] = {
    errors.TooLarge: 413,
    errors.UnsupportedType: 415,
    errors.InvalidInput: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.KeyReused: 422,
    errors.TooMany: 429,
    errors.StoreUnavailable: 503,
}
RETRY_AFTER_S = 1

log = logging.getLogger(__name__)


def install(app: Flask, authenticator: Authenticator) -> None:
    @app.errorhandler(errors.RoutemasterError)
    def ours(error: errors.RoutemasterError) -> Response:
        status = next(code for kind, code in STATUS.items() if isinstance(error, kind))
        response = failed(error.error, status, error.detail)
        if isinstance(error, errors.Unauthenticated):
            challenges = authenticator.challenges(stale=isinstance(error, StaleNonce))
            response.headers.setlist("WWW-Authenticate", challenges)
        elif isinstance(error, errors.TooMany):
            response.headers["Retry-After"] = str(error.retry_after_s)
        elif isinstance(error, errors.StoreUnavailable):
            response.headers["Retry-After"] = str(RETRY_AFTER_S)
            log.warning("store unavailable reason=%s", error.reason)
        return response

    @app.errorhandler(HTTPException)
    def frameworks(error: HTTPException) -> Response:
        if isinstance(error, RequestEntityTooLarge):
            limit = app.config["MAX_CONTENT_LENGTH"]
            return ours(errors.TooLarge("body", f"must be at most {limit} bytes"))
        response = failed((error.name or "error").lower(), error.code or 500)
        allowed = getattr(error, "valid_methods", None)
        if allowed:
            response.headers["Allow"] = ", ".join(allowed)
        return response

    @app.errorhandler(Exception)
    def bugs(error: Exception) -> Response:
        log.exception("a bug error=%s", type(error).__name__)
        return failed("internal error", 500)


def failed(error: str, status: int, detail: dict[str, object] | None = None) -> Response:
    body: dict[str, object] = {"error": error}
    if detail is not None:
        body["detail"] = detail
    return as_json(body, status)

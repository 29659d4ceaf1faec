"""Publishing before Flask: the usual `POST /topics/:name` goes straight to the publisher.

Flask's dispatch costs more than a publish. This serves the plain shape of the request, by the same
`Publisher.publish`; whatever is unusual about one (its path, its body's length, its scheme, any
error) goes to Flask, whose view does the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from flask import Flask

from routemaster.bus import Bus
from routemaster.errors import InvalidInput
from routemaster.publish import Publication
from routemaster.web import tls
from routemaster.web.answers import SHORT, read
from routemaster.web.topics import accepted_status, publication

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse
    from _typeshed.wsgi import WSGIEnvironment as Environ

PREFIX = "/topics/"


class Front:
    def __init__(self, app: Flask, bus: Bus) -> None:
        self._app = app
        self._flask = app.wsgi_app
        self._publish = bus.publisher.publish
        self._settings = bus.settings

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if not self._is_usual(environ):
            return self._flask(environ, start_response)
        try:
            stored = self._publish(self._publication(environ))
        except Exception as error:  # all of them: Flask's handlers know what to say
            return self._refused(environ, start_response, error)
        headers = self._headers(stored.duplicates)
        if accepted_status(environ) == 200:
            start_response("200 OK", [*headers, ("Content-Length", "0")])
        else:
            start_response("204 NO CONTENT", headers)
        return ()

    def _publication(self, environ: Environ) -> Publication:
        length = int(environ["CONTENT_LENGTH"])
        body = read(environ, length)
        if len(body) < length:
            raise InvalidInput("body", SHORT)
        return publication(environ, environ["PATH_INFO"][len(PREFIX) :], body)

    def _is_usual(self, environ: Environ) -> bool:
        path, length = environ["PATH_INFO"], environ.get("CONTENT_LENGTH", "")
        return (
            environ["REQUEST_METHOD"] == "POST"
            and path.startswith(PREFIX)
            and "/" not in path[len(PREFIX) :]
            and path.isascii()
            and length.isdecimal()
            and int(length) <= self._settings.max_body_bytes
            and (not self._settings.force_ssl or self._is_secure(environ))
        )

    def _is_secure(self, environ: Environ) -> bool:
        return tls.is_secure(environ, self._settings.trusted_proxies)

    def _headers(self, duplicates: int) -> list[tuple[str, str]]:
        headers = [("Routemaster-Duplicates", str(duplicates))] if duplicates else []
        if self._settings.force_ssl:
            headers.append(("Strict-Transport-Security", tls.HSTS))
        return headers

    def _refused(
        self, environ: Environ, start_response: StartResponse, error: Exception
    ) -> Iterable[bytes]:
        with self._app.request_context(environ):
            response = self._app.finalize_request(self._app.handle_user_exception(error))
        return response(environ, start_response)

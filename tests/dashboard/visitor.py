"""Somebody with a browser, without the browser: keeps cookies and sends the forms it was given."""

from __future__ import annotations

import html
import re
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

FROM_US = {"Sec-Fetch-Site": "same-origin"}
TOKEN = re.compile(r'name="form_token" value="([^"]+)"')


class Visitor:
    def __init__(self, http: FlaskClient, **environ: str) -> None:
        self.http = http
        self._environ = environ

    def get(self, path: str = "", **options: Any) -> TestResponse:
        options.setdefault("environ_overrides", self._environ)
        return self.http.get(f"/dashboard{path}", **options)

    def text(self, path: str = "") -> str:
        """What a reader sees, more or less."""
        response = self.get(path)
        assert response.status_code == 200, response.get_data(as_text=True)
        bare = re.sub(r"<[^>]+>", " ", response.get_data(as_text=True))
        return re.sub(r"\s+", " ", html.unescape(bare))

    def form_token(self, path: str) -> str:
        found = TOKEN.findall(self.get(path).get_data(as_text=True))
        assert found, f"no form on {path}"
        return str(found[-1])

    def post(self, path: str, fields: dict[str, str], **options: Any) -> TestResponse:
        options.setdefault("headers", FROM_US)
        options.setdefault("environ_overrides", self._environ)
        return self.http.post(f"/dashboard{path}", data=fields, **options)

    def send(self, path: str, **fields: str) -> TestResponse:
        """The form on the page of that path, as its button sends it."""
        return self.post(path, {"form_token": self.form_token(path), **fields})

    def sign_in(self, token: str, **fields: str) -> TestResponse:
        return self.send("/sign-in", token=token, **fields)

    def sign_out(self) -> TestResponse:
        return self.post("/sign-out", {"form_token": self.form_token("")})

    @property
    def is_in(self) -> bool:
        return self.get().status_code == 200

    def cookie(self, name: str = "routemaster_session") -> str | None:
        found = self.http.get_cookie(name)
        return found.value if found else None

"""Who is calling, for every route but publishing, which checks by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import request

from routemaster.bus import Bus
from routemaster.errors import Forbidden
from routemaster.identity import Credentials, Identity


def credentials(environ: Mapping[str, Any]) -> Credentials:
    method = environ["REQUEST_METHOD"]
    return Credentials(environ.get("HTTP_AUTHORIZATION", ""), method, asked_for(environ))


def asked_for(environ: Mapping[str, Any]) -> str:
    """The request's target as the client wrote it, which Digest signs."""
    raw: str | None = environ.get("RAW_URI")
    if raw:
        return raw
    query = environ.get("QUERY_STRING", "")
    path: str = environ["PATH_INFO"]
    return f"{path}?{query}" if query else path


class Callers:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    def anyone(self) -> Identity:
        """By the newest table: a token revoked a moment ago opens nothing."""
        return self._bus.authenticator.identify(
            credentials(request.environ), self._bus.directory.fresh()
        )

    def root(self) -> Identity:
        identity = self.anyone()
        if not identity.is_root:
            raise Forbidden("only the root key may do this")
        return identity

    def client(self) -> Identity:
        identity = self.anyone()
        if identity.is_root:
            raise Forbidden("the root key has no subscription: use a client's token")
        return identity

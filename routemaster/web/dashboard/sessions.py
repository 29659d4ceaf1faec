"""Signed in: a random id in a cookie, and what it stands for in Redis.

Nothing of the token is in the cookie. Redis knows an id only by a digest keyed by the root key: who
reads Redis cannot sign in with what is there, and a new root key ends every session.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

from flask import Response, request

from routemaster.bus import Bus
from routemaster.domain.names import parse_client
from routemaster.domain.token import same
from routemaster.errors import Forbidden, TooMany, Unauthenticated
from routemaster.identity import Identity
from routemaster.store.sessions import LIFE_MS
from routemaster.store.table import Table
from routemaster.web import tls

COOKIE = "routemaster_session"
# Of who is not signed in: with nothing to compare a form with, others could sign somebody in.
FORM_COOKIE = "routemaster_form"
ID = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
BUCKETS = 4096
CONTEXT = b"routemaster dashboard, version 1"


@dataclass(frozen=True, slots=True)
class Session:
    id: str
    identity: Identity


class Sessions:
    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._key = hmac.digest(bus.settings.root_key.encode(), CONTEXT, "sha256")

    def current(self) -> Session:
        """Whose request this is. By the newest table: a revoked token's session has ended."""
        id_ = self._cookie(COOKIE)
        reference = self._bus.sessions.seen(self._keyed("session", id_)) if id_ else ""
        if not reference:
            raise Unauthenticated("sign in")
        table = self._bus.directory.fresh()
        return Session(id_, self._bus.authenticator.referred(reference, table))

    def is_good(self, session: Session, table: Table) -> bool:
        """Still, for what lasts longer than a request."""
        reference = self._bus.sessions.seen(self._keyed("session", session.id))
        try:
            return self._bus.authenticator.referred(reference, table) == session.identity
        except Unauthenticated:
            return False

    def open(self, token: str) -> str:
        """The id of a new session; an old one's is never kept. Raises TooMany, Unauthenticated."""
        wait_ms = self._bus.sessions.try_sign_in(self._bucket())
        if wait_ms:
            raise TooMany("too many tries to sign in", -(-wait_ms // 1000))
        table = self._bus.directory.fresh()
        reference = self._bus.authenticator.reference(token, table)
        id_ = new_id()
        self._bus.sessions.open(self._keyed("session", id_), reference)
        return id_

    def close(self, session: Session) -> None:
        self._bus.sessions.close(self._keyed("session", session.id))

    def form_token(self, id_: str) -> str:
        return self._keyed("form", id_)

    def form_id(self) -> str:
        """The browser's, or a new one for it."""
        return self._cookie(FORM_COOKIE) or new_id()

    def is_ours(self, id_: str) -> bool:
        """Whether the form that is posted was made by us for who posts it."""
        given = request.form.get("form_token", "")
        return bool(id_) and comes_from_us() and same(given, self.form_token(id_))

    def set_cookie(self, response: Response, name: str, id_: str) -> None:
        response.set_cookie(
            self._named(name), id_, max_age=LIFE_MS // 1000, path="/",
            httponly=True, samesite="Strict", secure=self._is_secure(),
        )  # fmt: skip

    def forget_cookie(self, response: Response, name: str) -> None:
        response.delete_cookie(
            self._named(name), path="/", httponly=True, samesite="Strict",
            secure=self._is_secure(),
        )  # fmt: skip

    def _cookie(self, name: str) -> str:
        found = request.cookies.get(self._named(name), "")
        return found if ID.fullmatch(found) else ""

    def _named(self, name: str) -> str:
        # Browsers take a __Host- cookie only over https, from this host itself, for all paths.
        return f"__Host-{name}" if self._is_secure() else name

    def _is_secure(self) -> bool:
        settings = self._bus.settings
        return settings.force_ssl or tls.is_secure(request.environ, settings.trusted_proxies)

    def _bucket(self) -> str:
        """Of the client's address. Nobody can choose whose bucket to fill."""
        address = tls.client_address(request.environ, self._bus.settings.trusted_proxies)
        return str(int(self._keyed("address", address)[:8], 16) % BUCKETS)

    def _keyed(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()


def visible(session: Session, name: str) -> str:
    """As in the API: a subscription is its own client's business, and root's."""
    identity = session.identity
    if not identity.is_root and identity.name != name:
        raise Forbidden("This is another client’s subscription.")
    return parse_client(name)


def new_id() -> str:
    return secrets.token_urlsafe(32)


def comes_from_us() -> bool:
    """Sec-Fetch-Site is the browser's own word; those that do not send it send Origin."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    scheme, _, host = request.headers.get("Origin", "").partition("://")
    return scheme in ("http", "https") and host == request.headers.get("Host", "")

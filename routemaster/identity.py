"""Who is asking: from an Authorization header and the routing table to an identity.

Basic (token as user name, password ignored), Bearer, and Digest (RFC 7616) where it is enabled.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

from routemaster.digest_auth import DigestAuth
from routemaster.domain.token import digest, same
from routemaster.errors import Unauthenticated
from routemaster.store.table import Client, Table

REALM = "routemaster"
ROOT = "root"
# Compared when a token is unknown, so that an answer takes as long either way.
NOBODY = digest("nobody")


@dataclass(frozen=True, slots=True)
class Identity:
    name: str
    is_root: bool = False


ROOT_IDENTITY = Identity(ROOT, is_root=True)


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a request presents. Digest signs the method and the path as well."""

    authorization: str
    method: str = ""
    path: str = ""


class Authenticator:
    def __init__(self, root_key: str, digest_auth: DigestAuth | None) -> None:
        self._root_digest = digest(root_key)
        self._digest_auth = digest_auth

    def identify(self, credentials: Credentials, table: Table) -> Identity:
        scheme, _, value = credentials.authorization.partition(" ")
        scheme = scheme.lower()
        if scheme == "basic":
            return self._by_token(user_of(value), table)
        if scheme == "bearer":
            return self._by_token(value.strip(), table)
        if scheme == "digest" and self._digest_auth:
            return self._by_digest(self._digest_auth, credentials, value, table)
        raise Unauthenticated("a token is required")

    def challenges(self, stale: bool = False) -> list[str]:
        plain = [f'Basic realm="{REALM}", charset="UTF-8"', f'Bearer realm="{REALM}"']
        return plain + (self._digest_auth.challenges(stale) if self._digest_auth else [])

    def is_root_key(self, token: str) -> bool:
        return same(digest(token), self._root_digest)

    def reference(self, token: str, table: Table) -> str:
        """What a session keeps in place of a token that is good now."""
        identity = self._by_token(token, table)
        return ROOT if identity.is_root else digest(token)

    def referred(self, reference: str, table: Table) -> Identity:
        """Whom it stands for, as long as the token does."""
        if reference == ROOT:
            return ROOT_IDENTITY
        client = table.clients.get(reference)
        if client is None:
            raise Unauthenticated("the token is not known")
        return Identity(client.name)

    def _by_token(self, token: str, table: Table) -> Identity:
        presented = digest(token)
        client = table.clients.get(presented)
        # The table is looked up by a digest, which nobody can steer; the comparison itself is
        # in constant time, and takes place for unknown tokens too.
        known = same(presented, presented if client else NOBODY)
        if same(presented, self._root_digest):
            return ROOT_IDENTITY
        if not client or not known:
            raise Unauthenticated("the token is not known")
        return Identity(client.name)

    def _by_digest(
        self, auth: DigestAuth, credentials: Credentials, value: str, table: Table
    ) -> Identity:
        claim = auth.parse(value)
        if claim.user == ROOT:
            secrets = [auth.root_secrets]
        else:
            secrets = [c.digest_ha1 for c in clients_named(table, claim.user) if c.digest_ha1]
        auth.verify(claim, secrets, credentials.method, credentials.path)
        return ROOT_IDENTITY if claim.user == ROOT else Identity(claim.user)


def clients_named(table: Table, name: str) -> list[Client]:
    return [client for client in table.clients.values() if client.name == name]


def user_of(value: str) -> str:
    """The user name of HTTP Basic: everything before the first colon."""
    try:
        decoded = base64.b64decode(value.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise Unauthenticated("the Authorization header is not readable") from None
    return decoded.partition(":")[0]

"""HTTP Digest (RFC 7616), for clients that can do nothing else; off unless a setting turns it on.

The server must keep H(name:realm:token), which is as good as the token for Digest; tokens made
while it is off have none, and cannot be used with it. Nonces are not stored: they carry their time
and a signature, and are good for five minutes. Within that time a captured request can be
repeated, so Digest does not replace TLS.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from routemaster.clock import Clock
from routemaster.domain.token import digest_ha1, same
from routemaster.errors import Unauthenticated

NONCE_MS = 5 * 60 * 1000
ALGORITHMS = {"SHA-256": hashlib.sha256, "MD5": hashlib.md5}
PARAMETER = re.compile(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|([^\s,]+))')
REQUIRED = ("username", "realm", "nonce", "uri", "response", "nc", "cnonce", "qop")


class StaleNonce(Unauthenticated):
    """The credentials are right but old: the client may try again without asking its user."""


@dataclass(frozen=True, slots=True)
class Claim:
    user: str
    algorithm: str
    values: Mapping[str, str]


class DigestAuth:
    def __init__(self, realm: str, root_key: str, clock: Clock) -> None:
        self._realm = realm
        self._clock = clock
        self._key = hashlib.sha256(b"digest nonce " + root_key.encode()).digest()
        self.root_secrets = self.secrets_for("root", root_key)

    def secrets_for(self, name: str, token: str) -> dict[str, str]:
        return {a: digest_ha1(name, self._realm, token, a) for a in ALGORITHMS}

    def challenges(self, stale: bool = False) -> list[str]:
        nonce = self._nonce(self._clock.now_ms())
        end = ", stale=true" if stale else ""
        return [
            f'Digest realm="{self._realm}", qop="auth", algorithm={a}, nonce="{nonce}"{end}'
            for a in ALGORITHMS
        ]

    def parse(self, value: str) -> Claim:
        found = PARAMETER.findall(value)
        values = {name.lower(): quoted or plain for name, quoted, plain in found}
        algorithm = values.get("algorithm", "MD5").upper()
        if any(name not in values for name in REQUIRED) or algorithm not in ALGORITHMS:
            raise Unauthenticated("the Digest credentials are incomplete")
        return Claim(values["username"], algorithm, values)

    def verify(
        self, claim: Claim, secrets: Iterable[Mapping[str, str]], method: str, path: str
    ) -> None:
        """`secrets`: H(A1) by algorithm, one entry per live token of the user."""
        values = claim.values
        if values["uri"] != path or values["qop"] != "auth":
            raise Unauthenticated("the Digest credentials are for another request")
        expected = [self._response(s[claim.algorithm], claim, method) for s in secrets]
        # No early way out: each token is compared, whichever fits.
        fitting = sum(same(values["response"].lower(), each) for each in expected)
        made_ms = self._made_ms(values["nonce"])
        if made_ms is None or not fitting:
            raise Unauthenticated("the Digest credentials do not fit")
        # Either way, because the clock of the machine that made it may be ahead of ours.
        if abs(self._clock.now_ms() - made_ms) > NONCE_MS:
            raise StaleNonce("the nonce has expired")

    def _response(self, ha1: str, claim: Claim, method: str) -> str:
        digest, v = ALGORITHMS[claim.algorithm], claim.values
        ha2 = digest(f"{method}:{v['uri']}".encode()).hexdigest()
        text = f"{ha1}:{v['nonce']}:{v['nc']}:{v['cnonce']}:{v['qop']}:{ha2}"
        return digest(text.encode()).hexdigest()

    def _nonce(self, now_ms: int) -> str:
        signature = hmac.new(self._key, str(now_ms).encode(), hashlib.sha256).hexdigest()
        return f"{now_ms}-{signature[:32]}"

    def _made_ms(self, nonce: str) -> int | None:
        """None when we did not make it."""
        made_ms, _, _ = nonce.partition("-")
        if not made_ms.isdecimal() or len(made_ms) > 16:
            return None
        return int(made_ms) if same(nonce, self._nonce(int(made_ms))) else None

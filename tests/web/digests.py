"""The client's side of HTTP Digest (RFC 7616), written from the RFC and not from our code."""

from __future__ import annotations

import hashlib
import re

HASHES = {"SHA-256": hashlib.sha256, "MD5": hashlib.md5}


def parameters(challenge: str) -> dict[str, str]:
    found = re.findall(r'(\w+)=(?:"([^"]*)"|([^\s,]+))', challenge)
    return {name: quoted or plain for name, quoted, plain in found}


def digest_challenges(response) -> dict[str, dict[str, str]]:
    """By algorithm."""
    texts = response.headers.getlist("WWW-Authenticate")
    found = [parameters(text) for text in texts if text.startswith("Digest ")]
    return {each["algorithm"]: each for each in found}


def answer(
    challenge: dict[str, str],
    user: str,
    password: str,
    method: str,
    uri: str,
    *,
    said_uri: str | None = None,
) -> str:
    hashed = HASHES[challenge["algorithm"]]

    def h(*parts: str) -> str:
        return hashed(":".join(parts).encode()).hexdigest()

    nonce, nc, cnonce = (
        challenge["nonce"],
        "00000001",
        "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
    )
    ha1, ha2 = h(user, challenge["realm"], password), h(method, said_uri or uri)
    response = h(ha1, nonce, nc, cnonce, "auth", ha2)
    return (
        f'Digest username="{user}", realm="{challenge["realm"]}", uri="{said_uri or uri}", '
        f'algorithm={challenge["algorithm"]}, nonce="{nonce}", nc={nc}, cnonce="{cnonce}", '
        f'qop=auth, response="{response}"'
    )

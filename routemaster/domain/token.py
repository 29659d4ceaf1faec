"""Tokens are secrets: shown once, kept as a digest, and named in listings by an id made of that."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from routemaster.errors import InvalidInput

_SECRET_BYTES = 32
_SECRET_LENGTH = 43  # of 32 bytes in URL-safe base64
# They end a Basic user name, or part a URL.
MARKS = ":/?#%"
CHOSEN = r"[!-~]{16,256}"
_GENERATED = re.compile(rf"([a-z0-9_-]{{1,64}})--[A-Za-z0-9_-]{{{_SECRET_LENGTH}}}")
_HASHES = {"SHA-256": "sha256", "MD5": "md5"}


def new_token(name: str) -> str:
    # A colon would end the user name of HTTP Basic, and the token could never be presented.
    return name.replace(":", "_") + "--" + secrets.token_urlsafe(_SECRET_BYTES)


def parse_token(value: object, field: str = "token") -> str:
    """A token of the caller's choice. It travels in Basic user names and in URLs."""
    if not isinstance(value, str) or not re.fullmatch(CHOSEN, value):
        raise InvalidInput(field, "must be 16 to 256 printable ASCII characters without spaces")
    if any(mark in value for mark in MARKS):
        raise InvalidInput(field, "must not hold any of : / ? # %")
    return value


def digest(token: str) -> str:
    return hashlib.sha256(_bytes(token)).hexdigest()


def masked(token: str) -> str:
    """The id that listings show and DELETE takes. Tells nothing of the last 43 characters."""
    generated = _GENERATED.fullmatch(token)
    name = generated[1] if generated else "token"
    return f"{name}--****{digest(token)[:12]}"


def same(a: str, b: str) -> bool:
    return hmac.compare_digest(_bytes(a), _bytes(b))


def digest_ha1(name: str, realm: str, token: str, algorithm: str) -> str:
    """H(A1) of RFC 7616. MD5 only for clients that know nothing else."""
    if algorithm not in _HASHES:
        raise InvalidInput("algorithm", "must be SHA-256 or MD5")
    secret = _bytes(f"{name}:{realm}:{token}")
    return hashlib.new(_HASHES[algorithm], secret, usedforsecurity=False).hexdigest()


def _bytes(text: str) -> bytes:
    # What a client presents may be any text; comparing it must not fail.
    return text.encode("utf-8", "surrogatepass")

"""Standard Webhooks signatures, v1: HMAC-SHA256 over id, time and body."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets as randomness
from collections.abc import Sequence

PREFIX = "whsec_"
SECRET_BYTES = 32


def new_secret() -> str:
    return PREFIX + base64.b64encode(randomness.token_bytes(SECRET_BYTES)).decode()


def signatures(secrets: Sequence[str], message_id: str, seconds: int, body: bytes) -> str:
    signed = f"{message_id}.{seconds}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.new(key_of(s), signed, hashlib.sha256).digest()).decode()
        for s in secrets
    )


def key_of(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(PREFIX))

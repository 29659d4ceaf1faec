"""Whether a request is from the bus: HTTP Basic, and Standard Webhooks signatures."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping, Sequence

from routemaster.domain.signature import signatures


class Missing(Exception):
    pass


class Wrong(Exception):
    pass


def check_basic(uuids: Sequence[str], headers: Mapping[str, str]) -> None:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        raise Missing("HTTP Basic with the subscription's uuid is required")
    try:
        user = base64.b64decode(value.strip(), validate=True).partition(b":")[0]
    except (binascii.Error, ValueError):
        raise Wrong("the Authorization header is not readable") from None
    # All of them, so that it takes as long whichever fits.
    if not any([hmac.compare_digest(user, uuid.encode()) for uuid in uuids]):
        raise Wrong("the uuid is another")


def check_signature(
    secrets: Sequence[str],
    headers: Mapping[str, str],
    body: bytes,
    now_s: float,
    tolerance_s: float,
) -> None:
    """Two secrets are valid while one replaces the other, on either side."""
    id, when = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    given = [part for part in headers.get("webhook-signature", "").split(" ") if part]
    if not id or not given:
        raise Missing("a signature is required")
    if not (when.isascii() and when.isdigit() and len(when) < 16):
        raise Wrong("the timestamp is not readable")
    if abs(now_s - int(when)) > tolerance_s:
        raise Wrong("the timestamp is too old or too new: is the clock right?")
    expected = signatures(secrets, id, int(when), body).encode().split(b" ")
    sent = [part.encode() for part in given[:8]]
    if not any([hmac.compare_digest(a, b) for a in expected for b in sent]):
        raise Wrong("the signature is by another secret, or of another body")

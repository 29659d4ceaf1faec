"""What an event may hold. Nothing but the standard library, so that the Python client checks by
these very rules before it sends, and is importable without what the bus needs."""

from __future__ import annotations

import re

from routemaster.errors import InvalidInput

TYPES = ("create", "update", "delete", "noop")
MAX_URL, MAX_FACET = 1024, 128
# The largest integer that a reader which knows only doubles (JavaScript, jq) gets right.
MAX_TIMESTAMP_MS = 2**53 - 1
ID = r"^[!-~]{1,128}\Z"

RULES = {
    "type": f"must be one of {', '.join(TYPES)}",
    "url": f"must be a string of 1 to {MAX_URL} characters",
    "timestamp": f"must be an integer of milliseconds from 0 to {MAX_TIMESTAMP_MS}, or null",
    "data": "must be an object, or null",
    "facet": f"must be a string of 1 to {MAX_FACET} characters, or null",
    "target": "must be the name of a client, or null",
    "id": "must be 1 to 128 printable ASCII characters without spaces, or null",
}

# How deep JSON may be nested, and what is said of it elsewhere too.
MAX_DEPTH = 20
TOO_DEEP = f"must not be nested deeper than {MAX_DEPTH} levels"
NUMBER_RANGE = "numbers must fit 64 bits"

# Nearly every URL; the others (an IPv6 host, non-ASCII text) are looked at more slowly.
usual_url = re.compile(
    r"https://[A-Za-z0-9._-]+(?::[0-9]{1,5})?(?:/[!\"$->@-~]*)?", re.ASCII
).fullmatch
_blank_or_control = re.compile(r"[\s\x00-\x20\x7f-\x9f]").search
_control = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]").search


def check_url(url: str) -> None:
    if not usual_url(url):
        _check_unusual_url(url)


def check_facet(facet: str) -> None:
    if _control(facet):
        raise InvalidInput("facet", "must not hold control characters")


def data_too_large(most_bytes: int) -> InvalidInput:
    return InvalidInput("data", f"must be at most {most_bytes} bytes as MessagePack")


def _check_unusual_url(url: str) -> None:
    if not url.startswith("https://"):
        raise InvalidInput("url", "must start with https://")
    if _blank_or_control(url):
        raise InvalidInput("url", "must not hold spaces or control characters")
    if "?" in url or "#" in url:
        raise InvalidInput("url", "must not have a query string or a fragment")
    authority = url[len("https://") :].partition("/")[0]
    if "@" in authority:
        raise InvalidInput("url", "must not hold a user name or password")
    if not _has_host(authority):
        raise InvalidInput("url", "must have a host, and a port only as a number")


def _has_host(authority: str) -> bool:
    return re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^\\:\[\]]+)(:[0-9]{1,5})?", authority) is not None

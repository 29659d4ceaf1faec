"""The URL that batches are sent to, normalised: what was checked is what is stored and dialled.

This is the first of two checks: a name may resolve to anything, so `networks.refused` is asked
again about the address at each dial.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address

from routemaster.domain.networks import Address, Network, refused
from routemaster.errors import InvalidInput

MAX_LENGTH = 1024

_URL = re.compile(r"(https?)://([^/]*)(/.*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]*))(?::([0-9]{1,5}))?")
_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_LOOPBACK = (IPv4Address("127.0.0.1"), IPv6Address("::1"))


def parse_callback(value: object, *, allow_http: bool, allowed_networks: Sequence[Network]) -> str:
    scheme, authority, path = _split(value, allow_http)
    parts = _AUTHORITY.fullmatch(authority)
    if not parts:
        raise _invalid("must have a host, and a port only as a number")
    bracketed, name, port = parts.groups()
    host = _ipv6(bracketed) if bracketed is not None else _name_or_ipv4(name)
    _check_network(host, allowed_networks)
    shown = f"[{host}]" if isinstance(host, IPv6Address) else str(host)
    url = f"{scheme}://{shown}{_port(port)}{path}"
    if len(url) > MAX_LENGTH:  # IDNA makes names longer
        raise _invalid(f"must be at most {MAX_LENGTH} characters")
    return url


def _invalid(rule: str) -> InvalidInput:
    return InvalidInput("callback", rule)


def _split(value: object, allow_http: bool) -> tuple[str, str, str]:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_LENGTH:
        raise _invalid(f"must be a string of 1 to {MAX_LENGTH} characters")
    if re.search(r"[\s\x00-\x20\x7f-\x9f\\]", value):
        raise _invalid("must not hold spaces, control characters or backslashes")
    if "?" in value or "#" in value:
        raise _invalid("must not have a query string or a fragment")
    parts = _URL.fullmatch(value)
    if not parts or (parts[1].lower() == "http" and not allow_http):
        raise _invalid("must start with " + ("http:// or https://" if allow_http else "https://"))
    scheme, authority, path = parts[1].lower(), parts[2], parts[3] or ""
    if "@" in authority:
        raise _invalid("must not hold a user name or password")
    if not path.isascii():
        raise _invalid("the path must be ASCII, with anything else percent-encoded")
    return scheme, authority, path


def _port(digits: str | None) -> str:
    if digits is None:
        return ""
    if not 1 <= int(digits) <= 65535:
        raise _invalid("the port must be from 1 to 65535")
    return f":{int(digits)}"


def _ipv6(text: str) -> IPv6Address:
    try:
        address = IPv6Address(text)
    except ValueError:
        raise _invalid("must have a valid IPv6 address between brackets") from None
    if address.scope_id is not None:
        raise _invalid("must not have a zone in its IPv6 address")
    return address


def _name_or_ipv4(text: str) -> str | IPv4Address:
    name = _ascii_name(text)
    # As browsers do: a name whose last label is a number is an address, and nothing else.
    last = name.rpartition(".")[2]
    if last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last):
        return _ipv4(name)
    return name


def _ascii_name(text: str) -> str:
    # Before the codec: its work grows with the square of a label's length.
    if len(text) > 253 + 1:
        raise _invalid("the host must be at most 253 characters")
    try:
        # Also turns full-width digits and other dots (U+3002) into what they are read as.
        name = text.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        raise _invalid("must have a valid host") from None
    if len(name) > 253 or not _HOST.fullmatch(name):
        raise _invalid("must have a valid host")
    return name


def _ipv4(text: str) -> IPv4Address:
    """As inet_aton reads it: one to four numbers in base 8, 10 or 16, the last one wide."""
    *heads, tail = [_number(part) for part in text.split(".")]
    if len(heads) > 3 or any(head > 255 for head in heads) or tail >= 256 ** (4 - len(heads)):
        raise _invalid("must have a valid IPv4 address")
    value = tail
    for place, head in enumerate(heads):
        value += head << 8 * (3 - place)
    return IPv4Address(value)


def _number(text: str) -> int:
    # Spelled out, because int() alone would also read 1_0 and 0x0x1.
    if re.fullmatch(r"0x[0-9a-f]*", text):
        return int(text[2:] or "0", 16)
    if re.fullmatch(r"0[0-7]*", text):
        return int(text, 8)
    if re.fullmatch(r"[1-9][0-9]*", text):
        return int(text)
    raise _invalid("must have a valid IPv4 address")


def _check_network(host: str | Address, allowed: Sequence[Network]) -> None:
    if isinstance(host, str):
        if host != "localhost" and not host.endswith(".localhost"):
            return
        reasons = [refused(address, allowed) for address in _LOOPBACK]
        # Open when either family is: the dial then takes the one that is.
        reason = None if None in reasons else "loopback"
    else:
        reason = refused(host, allowed)
    if reason:
        raise _invalid(f"must not point to a {reason} address")

"""Where a callback may not go: this machine, our own network, and what has no business on the net.

A table of our own, because `ipaddress.is_global` is wrong for us: on Python 3.11 it holds for
192.88.99.1, 224.0.0.1, and 127.0.0.1 written as 64:ff9b::7f00:1 (NAT64) or 2002:7f00:1:: (6to4).
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
_Span = tuple[int, int, str]


def _spans(table: Sequence[tuple[str, str]]) -> tuple[_Span, ...]:
    """Plain integers: comparing them at each dial allocates nothing."""
    networks = [(ip_network(text), reason) for text, reason in table]
    return tuple((int(net[0]), int(net[-1]), reason) for net, reason in networks)


# The first match names the reason, so a single address stands before the network around it.
_V4 = _spans(
    [
        ("169.254.169.254/32", "metadata"),
        ("169.254.170.2/32", "metadata"),
        ("100.100.100.200/32", "metadata"),
        ("192.0.0.192/32", "metadata"),
        ("168.63.129.16/32", "metadata"),
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
    ]
)
_V6 = _spans(
    [
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("fd00:ec2::254/128", "metadata"),
        ("fd20:ce::254/128", "metadata"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
        ("2001::/23", "reserved"),
        # Only 2000::/3 is given out for use on the net: refuse the rest, known and to come.
        ("::/3", "reserved"),
        ("4000::/2", "reserved"),
        ("8000::/1", "reserved"),
    ]
)

_LOW_32 = 0xFFFF_FFFF
# Prefixes of 96 bits followed by an IPv4 address: compatible, mapped, translated, NAT64.
_PREFIXES_96 = frozenset(
    int(IPv6Address(text)) >> 32 for text in ("::", "::ffff:0:0", "::ffff:0:0:0", "64:ff9b::")
)
_SIX_TO_FOUR = 0x2002
_TEREDO = 0x2001_0000


def refused(address: str | Address, allowed: Sequence[Network] = ()) -> str | None:
    """Why `address` must not be dialled, or None when it may be."""
    if isinstance(address, str):
        try:
            address = ip_address(address)
        except ValueError:
            return "not an address"
    inner = _embedded(int(address)) if isinstance(address, IPv6Address) else ()
    reason = _first_reason(inner) if inner else _reason(address)
    if reason is None or _is_allowed(address, inner, allowed):
        return None
    return reason


def _reason(address: Address) -> str | None:
    table = _V4 if isinstance(address, IPv4Address) else _V6
    return _lookup(int(address), table)


def _first_reason(inner: tuple[int, ...]) -> str | None:
    return next((reason for value in inner if (reason := _lookup(value, _V4))), None)


def _lookup(value: int, table: tuple[_Span, ...]) -> str | None:
    for first, last, reason in table:
        if first <= value <= last:
            return reason
    return None


def _embedded(value: int) -> tuple[int, ...]:
    """The IPv4 addresses that a packet to this IPv6 address may end up at."""
    if value <= 1:  # :: and ::1 look like IPv4-compatible addresses but are themselves
        return ()
    if value >> 32 in _PREFIXES_96:
        return (value & _LOW_32,)
    if value >> 112 == _SIX_TO_FOUR:
        return (value >> 80 & _LOW_32,)
    if value >> 96 == _TEREDO:
        return (value >> 64 & _LOW_32, ~value & _LOW_32)  # server, and the client inverted
    return ()


def _is_allowed(address: Address, inner: tuple[int, ...], allowed: Sequence[Network]) -> bool:
    if any(address in network for network in allowed):
        return True
    # With two inner addresses (Teredo) each refused one has to be allowed.
    judged = [IPv4Address(value) for value in inner if _lookup(value, _V4)]
    return bool(judged) and all(any(one in net for net in allowed) for one in judged)

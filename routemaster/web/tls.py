"""Plain HTTP is sent to HTTPS. Who speaks for the scheme is decided here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any
from urllib.parse import quote

from flask import Flask, Response, request

from routemaster.domain.networks import Network
from routemaster.errors import InvalidInput
from routemaster.settings import Settings

HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
HSTS = "max-age=31536000"


def install(app: Flask, settings: Settings) -> None:
    if not settings.force_ssl:
        return

    @app.before_request
    def to_https() -> Response | None:
        # Load balancers ask for health in plain HTTP, and no secret travels with it.
        if is_secure(request.environ, settings.trusted_proxies) or request.path.startswith(
            "/health"
        ):
            return None
        host = request.headers.get("Host", "")
        if not HOST.fullmatch(host):
            raise InvalidInput("Host", "must be a host name")
        return Response(status=308, headers={"Location": f"https://{host}{asked_for()}"})

    @app.after_request
    def only_https_from_now_on(response: Response) -> Response:
        if is_secure(request.environ, settings.trusted_proxies):
            response.headers["Strict-Transport-Security"] = HSTS
        return response


def asked_for() -> str:
    """Path and query, quoted again: the path comes decoded, and may hold a line break by now."""
    path = quote(request.environ.get("PATH_INFO", "").encode("latin-1"), safe="/:@!$&'()*+,;=~")
    query = quote(request.query_string, safe="%/?:@!$&'()*+,;=~")
    return f"{path}?{query}" if query else path


def is_secure(environ: Mapping[str, Any], trusted: tuple[Network, ...]) -> bool:
    """X-Forwarded-Proto is anybody's word, unless a proxy of ours says it."""
    if is_trusted(environ.get("REMOTE_ADDR", ""), trusted):
        told: str = environ.get("HTTP_X_FORWARDED_PROTO", "")
        return told.rpartition(",")[2].strip().lower() == "https"
    return bool(environ.get("wsgi.url_scheme") == "https")


def client_address(environ: Mapping[str, Any], trusted: tuple[Network, ...]) -> str:
    """Of who speaks to us, or to the nearest proxy of ours: the last one that no proxy of ours has.
    IPv6 by its network of 64 bits, which is what one customer gets."""
    address: str = environ.get("REMOTE_ADDR", "")
    told = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
    while is_trusted(address, trusted) and told:
        address = told.pop().strip()
    try:
        parsed = ip_address(address)
    except ValueError:
        return ""
    if isinstance(parsed, IPv6Address) and not parsed.ipv4_mapped:
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return str(parsed)


def is_trusted(peer: str, trusted: tuple[Network, ...]) -> bool:
    try:
        address = ip_address(peer)
    except ValueError:
        return False
    # On a socket for both families an IPv4 peer has an IPv6 address.
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return any(address in network for network in trusted)

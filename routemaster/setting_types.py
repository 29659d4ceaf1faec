"""How the text of an environment variable becomes a value: each function returns a parser, which
raises ValueError with the rule that was broken. No parser puts a secret into its message."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
EXPORT_SCHEMES = ("file", "s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


def integer(low: int, high: int) -> Callable[[str], int]:
    rule = f"must be a whole number from {low} to {high}"

    def parse(text: str) -> int:
        # int() alone would take "1_000", "+5" and Arabic digits; 15 digits are more than any bound.
        if not re.fullmatch(r"[0-9]{1,15}", text) or not low <= int(text) <= high:
            raise ValueError(f"{rule}, not {text!r}")
        return int(text)

    return parse


def seconds(low: float, high: float) -> Callable[[str], float]:
    rule = f"must be a number of seconds from {low:g} to {high:g}"

    def parse(text: str) -> float:
        # The pattern is what refuses "nan", "inf" and "1e9".
        if not re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", text) or not low <= float(text) <= high:
            raise ValueError(f"{rule}, not {text!r}")
        return float(text)

    return parse


def size(low: int, high: int) -> Callable[[str], int]:
    rule = f"must be a size from {low} to {high} bytes (512k, 100m and 1g are understood)"

    def parse(text: str) -> int:
        match = re.fullmatch(r"([0-9]{1,15})([kmg]?)b?", text.lower())
        n_bytes = int(match[1]) * _UNITS[match[2]] if match else -1
        if not low <= n_bytes <= high:
            raise ValueError(f"{rule}, not {text!r}")
        return n_bytes

    return parse


def boolean(text: str) -> bool:
    word = text.lower()
    if word not in _TRUE + _FALSE:
        raise ValueError(f"must be one of {', '.join(_TRUE + _FALSE)}, not {text!r}")
    return word in _TRUE


def choice(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"must be one of {', '.join(words)}, not {text!r}")
        return text.lower()

    return parse


def choices(*words: str) -> Callable[[str], tuple[str, ...]]:
    """Comma separated; `none` for none of them, since an empty variable counts as unset."""

    def parse(text: str) -> tuple[str, ...]:
        found = tuple(part.strip() for part in text.lower().split(","))
        if found == ("none",):
            return ()
        if not set(found) <= set(words) or len(set(found)) < len(found):
            raise ValueError(f"must be none, or some of {', '.join(words)}, not {text!r}")
        return found

    return parse


def matching(pattern: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"must match {pattern}, not {text!r}")
        return text

    return parse


def directory(text: str) -> Path:
    # Absolute from here on: web, worker and redis must mean the same folder.
    return Path(text).expanduser().absolute()


def host(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        # Only digits and dots was meant as an address: 127.0.0.256 is not a name.
        if re.fullmatch(r"[0-9.]+", text) or not re.fullmatch(r"[A-Za-z0-9.-]{1,253}", text):
            raise ValueError(f"must be an IP address or a host name, not {text!r}") from None
        return text


def host_and_port(text: str) -> tuple[str, int]:
    name, _, port = text.rpartition(":")
    return host(name.removeprefix("[").removesuffix("]")), integer(1, 65535)(port)


def networks(text: str) -> tuple[Network, ...]:
    """Comma separated; `none` for no network at all, since an empty variable counts as unset."""
    if text.lower() == "none":
        return ()
    return tuple(_network(part.strip()) for part in text.split(","))


def _network(text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise ValueError(f"must be networks like 10.0.0.0/8,::1/128 or none: {error}") from None


def secret(text: str) -> str:
    # It travels as the user name of HTTP Basic, which ends at a colon.
    if not re.fullmatch(r"[!-9;-~]{1,1024}", text):
        raise ValueError("must be visible ASCII characters without spaces and colons, at most 1024")
    return text


def tokens(text: str) -> tuple[str, ...]:
    """`name--secret`, comma separated. A client may have several tokens, so names may repeat."""
    found = tuple(part.strip() for part in text.split(","))
    for position, token in enumerate(found, start=1):
        # At the first `--`: a name may hold single hyphens. The secret travels as the user name of
        # HTTP Basic, which ends at a colon, and in the path of a DELETE.
        name, _, key = token.partition("--")
        is_name = re.fullmatch(r"[a-z0-9_-]{1,64}", name) and name != "root"
        if not is_name or not re.fullmatch(r"[!-~]+", key) or re.search(r"[:/?#%]", key):
            raise ValueError(
                f"entry {position} must be name--secret, the name matching [a-z0-9_-]{{1,64}} and "
                "not root, the secret without spaces and any of : / ? # %"
            )
    if len(set(found)) < len(found):
        raise ValueError("must not name a token twice")
    return found


def export_url(text: str) -> str | None:
    """A folder of this machine, or of what pyarrow can reach; `none` for no export."""
    if text.lower() == "none":
        return None
    if "://" not in text:
        return str(directory(text))
    # Checked without echoing the URL, which may hold a secret.
    rule = f"must be a directory, none, or a URL of {', '.join(f'{s}://' for s in EXPORT_SCHEMES)}"
    try:
        url = urlsplit(text)
        has_target = bool(url.path.strip("/") if url.scheme == "file" else url.hostname)
    except ValueError:
        raise ValueError(rule) from None
    if url.scheme not in EXPORT_SCHEMES or not has_target:
        raise ValueError(rule)
    return text


def redis_url(text: str) -> str:
    # Checked without echoing the URL, which may hold a password.
    rule = "must be redis://host:port/db, rediss://host:port/db or unix:///path"
    try:
        url = urlsplit(text)
        has_target = bool(url.path if url.scheme == "unix" else url.hostname and url.port != 0)
    except ValueError:
        raise ValueError(rule) from None
    if url.scheme not in ("redis", "rediss", "unix") or not has_target:
        raise ValueError(rule)
    return text


def dsn(text: str) -> str:
    """https://key@host/project, as Sentry shows it. Never echoed: it holds a key."""
    rule = "must be https://KEY@HOST/PROJECT, as Sentry shows it"
    try:
        url = urlsplit(text)
        is_whole = bool(url.username and url.hostname and url.port != 0)
    except ValueError:
        raise ValueError(rule) from None
    if url.scheme not in ("http", "https") or not is_whole or not url.path.strip("/"):
        raise ValueError(rule)
    return text

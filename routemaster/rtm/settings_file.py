"""`.rtmrc`, here or at home: named buses and tokens, in TOML.

    [production]
    bus = "bus.example.com"
    token = "shop--..."

`-b @production` means both, `-t @production` only the token; without -b, [default] is meant.
"""

from __future__ import annotations

import os
import stat
import tomllib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import click

NAME = ".rtmrc"
DEFAULT = "@default"


@dataclass(frozen=True, slots=True)
class Place:
    bus: str | None
    token: str | None


def find() -> Path | None:
    return next((p for p in (Path(NAME), Path.home() / NAME) if p.is_file()), None)


def read(path: Path | None) -> dict[str, Place]:
    if path is None:
        return {}
    check_owner(path)
    try:
        tables = tomllib.loads(path.read_text())
    except (OSError, ValueError) as problem:
        raise click.ClickException(f"{path}: {problem}") from None
    return {name: place(path, name, table) for name, table in tables.items()}


def place(path: Path, name: str, table: object) -> Place:
    if not isinstance(table, dict) or set(table) - {"bus", "token"}:
        raise click.ClickException(f"{path}: [{name}] must hold `bus`, `token`, or both")
    if not all(isinstance(value, str) for value in table.values()):
        raise click.ClickException(f"{path}: [{name}]: bus and token must be strings")
    return Place(table.get("bus"), table.get("token"))


def check_owner(path: Path) -> None:
    """It holds secrets, and says where they are sent."""
    found = path.stat()
    if found.st_uid != os.getuid():
        raise click.ClickException(f"{path} belongs to another user, and is not used")
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise click.ClickException(f"{path} is open to others: chmod 600 {path}")


def resolve(bus: str | None, token: str | None) -> tuple[str, str]:
    """The bus's URL and the token, from what was given and what is named."""
    needs_file = bus is None or bus.startswith("@") or (token or "").startswith("@")
    named = read(find()) if needs_file else {}
    if bus is None and DEFAULT[1:] not in named:
        raise click.UsageError("which bus? Give --bus, or name one [default] in ~/.rtmrc")
    bus = bus or DEFAULT
    if token is not None and token.startswith("@"):
        token = looked_up(named, token).token
    if bus.startswith("@"):
        found = looked_up(named, bus)
        token = token or found.token
        if not found.bus:
            raise click.UsageError(f"[{bus[1:]}] in {NAME} has no `bus`")
        bus = found.bus
    if not token:
        raise click.UsageError("which token? Give --token, or name one in ~/.rtmrc")
    return as_url(bus), token


def looked_up(named: dict[str, Place], reference: str) -> Place:
    if reference[1:] not in named:
        raise click.UsageError(f"no [{reference[1:]}] in {NAME}")
    return named[reference[1:]]


def as_url(bus: str) -> str:
    """A bare name is reached by TLS, unless it is this machine."""
    if "://" in bus:
        return bus
    host = urlsplit(f"//{bus}").hostname or ""
    is_here = host == "localhost" or host == "::1" or host.startswith("127.")
    return f"{'http' if is_here else 'https'}://{bus}"

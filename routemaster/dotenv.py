"""`.env`: settings kept beside the checkout. The environment wins over it.

honcho reads `.env` as well, and lets it win over the environment. It looks only at lines that
begin with NAME=, so ours begin with `export`: honcho skips them, we and `source .env` do not.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from routemaster import reporter
from routemaster.errors import SettingsError
from routemaster.settings import STARTED_BY_US, Settings, unknown_names, without_invented_port

EX_CONFIG = 78
ROOT_KEY = "ROUTEMASTER_ROOT_KEY"

_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_SINGLE = re.compile(r"'([^']*)'\s*(?:#.*)?")
# As in a shell, # begins a comment only after a blank: passwords hold it.
_BARE = re.compile(r"([^'\"\s]*)\s*(?:(?<=\s)#.*)?")


def parse(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    problems: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        assignment = _ASSIGNMENT.fullmatch(line)
        value = _unquote(assignment[2]) if assignment else None
        if assignment is None or value is None:
            # The line is not shown, it may hold a secret.
            problems.append(f".env line {number} is not NAME=value (quote a value with blanks)")
        else:
            values[assignment[1]] = value
    if problems:
        raise SettingsError(problems)
    return values


def _unquote(text: str) -> str | None:
    if match := _DOUBLE.fullmatch(text):
        return re.sub(r'\\(["\\$`])', r"\1", match[1])
    match = _SINGLE.fullmatch(text) or _BARE.fullmatch(text)
    return match[1] if match else None


def load(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    try:
        values = parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        values = {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError([f"{path} cannot be read: {error}"]) from error
    # An empty variable counts as unset, so it does not hide a value in the file.
    given = without_invented_port(environ)
    return values | {name: value for name, value in given.items() if value or name not in values}


def create(path: Path) -> str:
    """Makes a root key, keeps it in `path` and returns it; a key that is there already stays.

    The file is only ever appended to, and under a lock: of two first starts at the same moment the
    second finds the first one's key.
    """
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with open(fd, "r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        content = file.read()
        if found := parse(content).get(ROOT_KEY):
            return found
        os.fchmod(fd, 0o600)
        key = secrets.token_urlsafe(32)
        gap = "" if not content or content.endswith("\n") else "\n"
        file.write(f"{gap}# Made by routemaster.start, for development.\nexport {ROOT_KEY}={key}\n")
    return key


def read_settings(*, needs_key: bool = True) -> Settings:
    """What each root process begins with. Who only reads files needs no root key."""
    try:
        env = load(Path(".env"), os.environ)
        if not needs_key and not env.get(ROOT_KEY, "").strip():
            env[ROOT_KEY] = secrets.token_urlsafe(32)  # known to nobody
        settings = Settings.from_env(env)
        if problem := reporter.problem(settings):
            raise SettingsError([problem])
    except SettingsError as error:
        exit_with(error)
    if STARTED_BY_US not in env:  # start has said it once, for all of its processes
        warn_of_unknown(env)
    return settings


def warn_of_unknown(env: Mapping[str, str]) -> None:
    for warning in unknown_names(env):
        print(f"routemaster: warning: {warning}", file=sys.stderr)


def exit_with(error: SettingsError) -> NoReturn:
    print(f"routemaster: {error}", file=sys.stderr)
    sys.exit(EX_CONFIG)

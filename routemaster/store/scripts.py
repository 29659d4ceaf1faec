"""The Lua scripts: one attribute per file in lua/, spelled out so that a search finds it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

INCLUDE = re.compile(r"^--@include (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    source: str
    sha: str

    @classmethod
    def read(cls, folder: Path, name: str) -> Script:
        source = expand((folder / f"{name}.lua").read_text(), folder / "include")
        return cls(name, source, hashlib.sha1(source.encode()).hexdigest())


def expand(source: str, includes: Path) -> str:
    """Replace each `--@include name` line: Lua in Redis has no require."""

    def read(match: re.Match[str]) -> str:
        return (includes / f"{match[1]}.lua").read_text()

    return INCLUDE.sub(read, source)


def folder() -> Path:
    """Inside the package when installed from a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "lua"
    return installed if installed.is_dir() else package.parent / "lua"


@dataclass(frozen=True, slots=True)
class Scripts:
    publish: Script
    pull_take: Script
    queue_push: Script
    queue_take: Script
    queue_renew: Script
    queue_ack: Script
    queue_nack: Script
    queue_scrub: Script
    queue_audit: Script
    queue_release: Script
    live_beat: Script
    lane_drop: Script
    lane_hasten: Script
    batches_sweep: Script
    subscriber_set: Script
    subscriber_leave: Script
    subscriber_state: Script
    subscriber_secret: Script
    subscriber_remove: Script
    subscriber_audit: Script
    topic_claim: Script
    topic_remove: Script
    token_add: Script
    token_remove: Script
    worker_beat: Script
    counters_read: Script
    counters_snapshot: Script
    export_claim: Script
    export_done: Script
    publishes_cut: Script
    series_append: Script
    session_open: Script
    session_seen: Script
    sign_in_try: Script


@cache
def load() -> Scripts:
    where = folder()
    return Scripts(*(Script.read(where, field.name) for field in fields(Scripts)))

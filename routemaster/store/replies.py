"""Reading what Redis holds, which may be anything: what cannot be read is shown as it can be, and
never stops who reads."""

from __future__ import annotations


def text(stored: bytes | None) -> str:
    return (stored or b"").decode(errors="replace")


def number(stored: bytes | None, default: int = 0) -> int:
    return int(stored) if stored and stored.isdigit() else default

"""MessagePack for scripts: Redis' Lua library knows no binary type, only strings."""

from __future__ import annotations

import msgpack


def for_lua(value: object) -> bytes:
    packed: bytes = msgpack.packb(value, use_bin_type=False)
    return packed

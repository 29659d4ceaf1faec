"""A whole database, read out: what a test compares before and after."""

from __future__ import annotations

from typing import Any

READ: dict[str, tuple[Any, ...]] = {
    "string": ("GET",),
    "list": ("LRANGE", 0, -1),
    "hash": ("HGETALL",),
    "set": ("SMEMBERS",),
    "zset": ("ZRANGE", 0, -1, "WITHSCORES"),
    "stream": ("XRANGE", "-", "+"),
}


def dump(client) -> dict[str, Any]:
    """Each key with its contents: bytes, a list, a set, or a dict for a hash or a sorted set."""
    keys = sorted(client.keys("*"))
    kinds = pipelined(client, [("TYPE", key) for key in keys])
    reads = [(READ[kind.decode()], key) for kind, key in zip(kinds, keys, strict=True)]
    contents = pipelined(client, [(verb, key, *rest) for (verb, *rest), key in reads])
    return {
        key.decode(): dict(value) if kind == b"zset" else value
        for key, kind, value in zip(keys, kinds, contents, strict=True)
    }


def digest(client) -> bytes:
    """Of every byte that is stored, in one round trip."""
    value: bytes = client.execute_command("DEBUG", "DIGEST")
    return value


def pipelined(client, commands):
    pipeline = client.pipeline(transaction=False)
    for command in commands:
        pipeline.execute_command(*command)
    return pipeline.execute()

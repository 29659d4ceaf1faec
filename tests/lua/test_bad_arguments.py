"""Keys of a wrong type and arguments that make no sense: refused, and nothing has changed.

Redis does not roll a script back that fails half-way, so every script looks before it writes.
"""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from routemaster.errors import StoreUnavailable
from routemaster.store.link import Arg
from tests.lua.calls import NAMES, ROWS, Call, Param, World, params, world
from tests.lua.dump import digest, dump
from tests.lua.invariants import problems

BAD_NUMBERS: list[Arg] = [
    "", " ", "abc", "nan", "-nan", "inf", "-inf", "-1", "-0", "0", "1.5", "1e400", "1e15",
    "9" * 30, "0x10", "1\x00", "\xff",
]  # fmt: skip
BAD_STRINGS: list[Arg] = ["", " ", "|", "a b", "\x00", b"\xff\xfe", "x" * 10_000, "%s%d", "{}"]
BAD_VALUES: list[Any] = [
    None, 7, "text", {}, {"a": 1}, [], [None], [1], ["a"], [[]], [["a"]], [[None] * 5], [{}],
    # Plans: a flat one, a max or timeout out of range, an event that is not there, a lane twice.
    ["s", "0", 1, 1, [9]], [["s", "0", 0, 1]], [["s", "0", 2, -1]], [["s", "0", 1.5, 1]],
    [["s", "0", 2, 1, [99]]], [["s", "0", 2, 1, ["x"]]], [["s", "0", 2, 1], ["s", "0", 2, 1]],
    # Ids: kept for no time, or for ever, too few of them, and of wrong types.
    [0, "k", "d", [""] * 5], [-1, "k", "d", [""] * 5], [2.0**60, "k", "d", [""] * 5],
    ["x", "k", "d", [""] * 5], [1000, "k", "d", [""]], [1000, 1, 2, 3],
    [1000, "k", "d", [1, 2, 3, 4, 5]], [1000, "k", None, [""] * 5], [1000, "k", {}, [""] * 5],
    [1000, "k", "d", [{}] * 5],
]  # fmt: skip
BAD_BYTES: list[Arg] = [b"", b"\xc1", b"\xdf\xff\xff\xff\xff", b"\x91" * 500]
BAD_BYTES += [msgpack.packb(value) for value in BAD_VALUES]
BENT = {"int": BAD_NUMBERS, "string": BAD_STRINGS, "bytes": BAD_BYTES}


def test_every_script_has_a_row():
    assert {name.partition(":")[0] for name in ROWS} == set(NAMES)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_does_something(settings, redis_server, name):
    """Else the tests below would pass for nothing."""
    here = world(settings)
    call = here.call_of(name)
    with redis_server.client() as client:
        before = digest(client)
        here.bus.link.run(call.script, call.keys, call.args)
        assert "no-writes" in call.script.source or digest(client) != before


@pytest.mark.parametrize("name", ROWS)
def test_keys_of_a_wrong_type(settings, redis_server, name):
    here = world(settings)
    call = here.call_of(name)
    half_way = []
    with redis_server.client() as client:
        for param in params(call.script, "KEYS"):
            key = here.sample(param.text) if param.kind == "prefix" else call.keys[param.number - 1]
            client.delete(key)
            # A stream, because nothing of ours is one but `attempts`, which takes it.
            client.xadd(key, {"not": "ours"}, id="1-1")
            if outcome(client, here, call) == "half-way":
                half_way.append(f"KEYS[{param.number}] {key}")
            here = world(settings)
            call = here.call_of(name)
    assert half_way == []


@pytest.mark.parametrize("name", ROWS)
def test_arguments_that_make_no_sense(settings, redis_server, name):
    here = world(settings)
    call = here.call_of(name)
    found = []
    with redis_server.client() as client:
        for param in params(call.script, "ARGV"):
            for bad in BENT[param.kind]:
                bent = Call(call.script, call.keys, list(call.args))
                bent.args[param.number - 1] = bad
                how = outcome(client, here, bent)
                if how == "half-way" or (how == "done" and out_of_order(client, here, param, name)):
                    found.append(f"ARGV[{param.number}] {bad!r}")
                if how != "refused":
                    here = world(settings)
                    call = here.call_of(name)
    assert found == []


def outcome(client, here: World, call: Call) -> str:
    before = digest(client)
    try:
        here.bus.link.run(call.script, call.keys, call.args)
    except StoreUnavailable:
        return "refused" if digest(client) == before else "half-way"
    return "done"


def out_of_order(client, here: World, param: Param, name: str) -> bool:
    """Of numbers only: a script cannot know a name that makes no sense. The audits' rows begin
    with something out of order, and may look at none of it."""
    if param.kind != "int" or "audit" in name:
        return False
    return problems(dump(client), here.bus.keys) != []

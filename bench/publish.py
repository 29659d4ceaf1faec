"""Measures publishing, everything side by side in one run: `python -m bench.publish [--quick]`.

Figures of two runs, or of two machines, do not compare; the ratios within one run do. A goal that
is missed does not fail the run. A run that loses count of its events is VOID: exit status 3.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from bench import cost, report, web
from bench.cores import on_one_core
from bench.load import Void
from bench.rig import Rig
from bench.scale import FULL, QUICK, TINY, Scale
from routemaster.redis_server import Server, find_servers

VOID = 3


def main(words: Sequence[str] | None = None) -> int:
    asked = arguments().parse_args(words)
    servers = {str(server): server for server in find_servers()}
    if not servers or asked.redis not in (None, *servers):
        print(f"no such Redis; there are: {', '.join(servers) or 'none'}", file=sys.stderr)
        return 2
    server = servers[asked.redis] if asked.redis else next(iter(servers.values()))
    scale = TINY if asked.tiny else QUICK if asked.quick else FULL
    print(f"{platform.python_implementation()} {platform.python_version()}, {server}"
          f"{' with' if asked.appendonly else ' without'} append-only file, "
          f"{os.cpu_count()} cores shared by load, web and Redis, "
          f"load average {os.getloadavg()[0]:.1f} before the run")  # fmt: skip
    start_s = time.monotonic()
    try:
        figures = measure(server, scale, asked.appendonly)
    except Void as reason:
        print(f"\nVOID: {reason}")
        return VOID
    print(f"\n{time.monotonic() - start_s:.0f} s; every accepted event was counted by the bus")
    if asked.json:
        asked.json.write_text(json.dumps({"server": str(server), **figures}, indent=1))
    return 0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.publish", description="Measures publishing.")
    parser.add_argument("--quick", action="store_true", help="half a minute instead of minutes")
    parser.add_argument("--tiny", action="store_true", help="for the tests; figures mean nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures there")
    parser.add_argument("--redis", metavar="NAME", help="which server, such as valkey-9.1.2")
    parser.add_argument("--appendonly", action="store_true", help="let Redis keep its file")
    return parser


def measure(server: Server, scale: Scale, appendonly: bool) -> dict[str, object]:
    with Rig(server, appendonly) as rig:
        singles = [row for n in scale.processes for row in web.singles(rig, scale, n)]
        print(report.of_singles(singles), flush=True)
        bulks = [row for n in scale.processes for row in web.bulks(rig, scale, n)]
        print(report.of_bulks(bulks), flush=True)
    costs = measure_costs(server, scale, appendonly)
    print(report.of_costs(costs), flush=True)
    flats = measure_flatness(server, scale, appendonly)
    print(report.of_flatness(flats), flush=True)
    goals = report.goals(singles, bulks, flats)
    report.print_goals(goals)
    return {
        "singles": [asdict(row) for row in singles],
        "bulks": [asdict(row) for row in bulks],
        "costs": [asdict(row) for row in costs],
        "flatness": [asdict(row) for row in flats],
        "goals": [asdict(row) for row in goals],
    }


def measure_costs(server: Server, scale: Scale, appendonly: bool) -> list[cost.Cost]:
    rows = []
    for shape in cost.shapes(scale):
        # A Redis that was used before has buffers and tables to give back: memory would shrink.
        with Rig(server, appendonly) as rig:
            rows.append(cost.cost(rig, scale, *shape))
    return rows


def measure_flatness(server: Server, scale: Scale, appendonly: bool) -> list[cost.Flat]:
    with ExitStack() as stack:
        empty, full, crowded = (stack.enter_context(Rig(server, appendonly)) for _ in range(3))
        cost.fill(full, scale)
        crowded.add_strangers(scale.strangers)
        rigs = {
            "empty": empty,
            f"{scale.queued:,} queued": full,
            f"{scale.strangers:,} subscribers": crowded,
        }
        with on_one_core([rig.redis.pid for rig in rigs.values()]):
            return cost.flatness(rigs, scale)


if __name__ == "__main__":
    sys.exit(main())

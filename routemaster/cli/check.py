from __future__ import annotations

import time

import click
from rich.table import Table

from routemaster import checks
from routemaster.bus import Bus
from routemaster.checks import OK, PROBLEM, WARNING, Finding
from routemaster.cli.session import a_bus, console, json_option, print_json, size
from routemaster.metrics.gather import workers
from routemaster.metrics.memory import marks_of, measure
from routemaster.store import scripts

MOST_SKEW_S = 2.0
STYLES = {OK: "green", WARNING: "yellow", PROBLEM: "bold red"}


@click.command()
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Look at settings, Redis, clock, scripts and workers, and say what to do about each.

    Exit status 1 when something must be mended.
    """
    with a_bus() as bus:
        findings = [Finding("settings", OK, f"{bus.settings.env}, all valid"), *examine(bus)]
    if as_json:
        print_json(
            [{"name": f.name, "level": f.level, "said": f.said, "advice": f.advice}
             for f in findings]
        )  # fmt: skip
    else:
        print_findings(findings)
    ctx.exit(1 if any(finding.level == PROBLEM for finding in findings) else 0)


def examine(bus: Bus) -> list[Finding]:
    return [*checks.examine(bus), memory_of(bus), clock_of(bus), scripts_of(bus), workers_of(bus)]


def memory_of(bus: Bus) -> Finding:
    memory = measure(bus)
    marks = marks_of(memory.max_bytes, bus.settings.redis_min_free_bytes)
    said = f"{size(memory.used_bytes)} of {size(memory.max_bytes)} used"
    if memory.used_bytes > marks.high_bytes:
        advice = "the oldest batches are being given up: add memory, or find who holds most"
        return Finding("memory", PROBLEM, said, advice)
    return Finding("memory", OK, f"{said}, batches are given up from {size(marks.high_bytes)}")


def clock_of(bus: Bus) -> Finding:
    seconds, microseconds = bus.link.call("TIME")
    ahead_s = time.time() - (int(seconds) + int(microseconds) / 1e6)
    said = f"this machine's clock and Redis' differ by {abs(ahead_s):.1f} s"
    if abs(ahead_s) > MOST_SKEW_S:
        advice = "Redis' decides when things are due, ours dates events: let both follow NTP"
        return Finding("clock", WARNING, said, advice)
    return Finding("clock", OK, said)


def scripts_of(bus: Bus) -> Finding:
    all_of_them = [getattr(scripts.load(), name) for name in scripts.Scripts.__slots__]
    bus.link.many([("SCRIPT", "LOAD", script.source) for script in all_of_them])
    return Finding("scripts", OK, f"{len(all_of_them)} scripts load")


def workers_of(bus: Bus) -> Finding:
    seconds, _ = bus.link.call("TIME")
    alive = int(workers(bus, int(seconds) * 1000).value)
    if not alive:
        return Finding("workers", WARNING, "no worker is alive", "run `routemaster worker`")
    return Finding("workers", OK, f"{alive} alive")


def print_findings(findings: list[Finding]) -> None:
    table = Table("", "what", "found", "what to do", box=None, pad_edge=False)
    for f in findings:
        table.add_row(f"[{STYLES[f.level]}]{f.level}[/]", f.name, f.said, f.advice)
    console().print(table)

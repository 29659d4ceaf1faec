"""The figures as text, and the goals they are held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.cost import Cost, Flat
from bench.tables import percent, table
from bench.web import Bulk, Single

SINGLE_OF_BARE, BULK_OF_SCRIPT, MOST_GROWTH = 0.60, 0.50, 1.5
JUDGED_BULK = 1000


@dataclass(frozen=True)
class Goal:
    """`computed` says from which figures, because a ratio can be made of many."""

    name: str
    computed: str
    wanted: str
    found: str
    is_met: bool


def of_singles(rows: list[Single]) -> str:
    columns = "processes subscribers req/s p50_ms p99_ms bare_req/s bare_p50 bare_p99 of_bare"
    return table(
        "Single publishes over HTTP, beside the bare handler on the same server",
        columns.split(),
        [
            (
                r.processes, r.subscribers, r.product.per_s, r.product.p50_ms, r.product.p99_ms,
                r.bare.per_s, r.bare.p50_ms, r.bare.p99_ms, percent(r.of_bare),
            )
            for r in rows
        ],
    )  # fmt: skip


def of_bulks(rows: list[Bulk]) -> str:
    columns = "processes events/req subscribers json lines bare script json_of_script"
    return table(
        "Bulk publishes over HTTP, events/s; `script` is the script without HTTP, by one process",
        [*columns.split(), "lines_of_script"],
        [
            (
                r.processes, r.events, r.subscribers, r.json, r.lines, r.bare, r.script,
                percent(r.json_of_script), percent(r.lines_of_script),
            )
            for r in rows
        ],
    )  # fmt: skip


def of_costs(rows: list[Cost]) -> str:
    return table(
        "Redis' time in the script, and memory of what is queued",
        "max events/req subscribers us/event us/event/sub bytes/event/sub".split(),
        [(r.max_events, r.events, r.subscribers, r.us_per_event, r.us, r.bytes) for r in rows],
    )


def of_flatness(rows: list[Flat]) -> str:
    return table(
        "One publish without HTTP, by what else is on the bus; ratios to the empty bus",
        "bus subscribers client_us redis_us client_ratio redis_ratio".split(),
        [
            (r.bus, r.subscribers, r.client_us, r.redis_us, r.client_ratio, r.redis_ratio)
            for r in rows
        ],
    )


def goals(singles: list[Single], bulks: list[Bulk], flats: list[Flat]) -> list[Goal]:
    # The product's own number of processes; fewer are shown to see what one can do.
    usual = max(row.processes for row in bulks)
    of_script = [
        ratio
        for row in bulks
        if row.events == JUDGED_BULK and row.processes == usual
        for ratio in (row.json_of_script, row.lines_of_script)
    ]
    growth = [ratio for row in flats for ratio in (row.client_ratio, row.redis_ratio)]
    return [
        at_least(
            "a single publish keeps up with the bare handler",
            "requests/s of neighbouring runs, median of rounds, the lowest row",
            SINGLE_OF_BARE,
            min(row.of_bare for row in singles),
        ),
        at_least(
            f"a bulk of {JUDGED_BULK:,} keeps up with the script alone",
            f"events/s of neighbouring runs, median of rounds, the lowest row and form with "
            f"{usual} processes",
            BULK_OF_SCRIPT,
            min(of_script),
        ),
        Goal(
            "a publish costs the same on a full and on a crowded bus",
            "median of slices over that of the empty bus, the highest of client's and Redis' time",
            f"<= {MOST_GROWTH}",
            f"{max(growth):.2f}",
            max(growth) <= MOST_GROWTH,
        ),
    ]


def at_least(name: str, computed: str, wanted: float, found: float) -> Goal:
    return Goal(name, computed, f">= {percent(wanted)}", percent(found), found >= wanted)


def print_goals(found: list[Goal], say: Callable[[str], None] = print) -> None:
    say("\nGoals")
    for goal in found:
        mark = "PASS" if goal.is_met else "MISS"
        say(f"{mark}  {goal.name}: {goal.found}, wanted {goal.wanted}\n      ({goal.computed})")

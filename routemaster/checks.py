"""What must be true of Redis before the bus trusts it with events."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass

from routemaster.bus import Bus, is_exporting
from routemaster.errors import StoreUnavailable

WAIT_S = 30.0
TURN_S = 0.1
OLDEST = (7, 0)
# sysexits.h: the service is not there; the configuration is wrong.
UNAVAILABLE, MISCONFIGURED = 69, 78
OK, WARNING, PROBLEM = "ok", "warning", "problem"

NO_PYARROW = (
    "the export needs pyarrow: run `pip install 'routemaster[export]'`, "
    "or set ROUTEMASTER_EXPORT_URL=none"
)

log = logging.getLogger(__name__)


def wait_for_redis(bus: Bus) -> None:
    """Returns when Redis is up and fit; ends the process with a reason when it is not."""
    give_up_ms = bus.clock.mono_ms() + int(WAIT_S * 1000)
    while True:
        try:
            problems, warnings = inspect(bus)
            break
        except StoreUnavailable as error:
            if bus.clock.mono_ms() > give_up_ms:
                log.error("redis unavailable reason=%s", error.reason)
                sys.exit(UNAVAILABLE)
            bus.clock.sleep(TURN_S)
    if bus.settings.export_url and not is_exporting(bus.settings):
        # In production somebody asked for it.
        (problems if bus.settings.is_production else warnings).append(NO_PYARROW)
    for warning in warnings:
        log.warning(warning)
    for problem in problems:
        log.error(problem)
    if problems:
        sys.exit(MISCONFIGURED)
    begin_counting(bus)


def begin_counting(bus: Bus) -> None:
    """The counters have an epoch from their first event on: the export need not guess later how
    much of what it finds is new."""
    try:
        bus.counters.snapshot()
    except StoreUnavailable as error:  # it is there for reading, at least
        log.warning("cannot begin an epoch of the counters reason=%s", error.reason)


@dataclass(frozen=True, slots=True)
class Finding:
    """`level` is ok, warning or problem; what is not ok comes with what to do about it."""

    name: str
    level: str
    said: str
    advice: str = ""

    @property
    def text(self) -> str:
        return f"{self.said}; {self.advice}" if self.advice else self.said


def inspect(bus: Bus) -> tuple[list[str], list[str]]:
    """What makes this Redis unfit, and what the operator should know."""
    findings = examine(bus)
    return (
        [finding.text for finding in findings if finding.level == PROBLEM],
        [finding.text for finding in findings if finding.level == WARNING],
    )


def examine(bus: Bus) -> list[Finding]:
    info = parse_info(bus.link.call("INFO"))
    return [version_of(info), policy_of(info), persistence_of(info), role_of(info)]


def version_of(info: dict[str, str]) -> Finding:
    version = info.get("redis_version", "0")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        said = f"Redis {version} is too old: 7.0 or later is needed"
        return Finding("version", PROBLEM, said, "upgrade it, or unset ROUTEMASTER_REDIS_URL")
    return Finding("version", OK, f"{info.get('server_name', 'redis').title()} {version}")


def policy_of(info: dict[str, str]) -> Finding:
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        return Finding(
            "eviction", PROBLEM,
            f"Redis may throw events away: maxmemory-policy is {policy}",
            "run `redis-cli config set maxmemory-policy noeviction`",
        )  # fmt: skip
    return Finding("eviction", OK, "noeviction")


def persistence_of(info: dict[str, str]) -> Finding:
    if info.get("aof_enabled") != "1":
        return Finding(
            "persistence", WARNING,
            "Redis keeps no append-only file: a crash loses what came since its last snapshot",
            "run `redis-cli config set appendonly yes`",
        )  # fmt: skip
    if info.get("aof_last_write_status", "ok") != "ok":
        return Finding(
            "persistence", PROBLEM, "Redis cannot write its append-only file", "look at its disk"
        )
    return Finding("persistence", OK, "append-only file")


def role_of(info: dict[str, str]) -> Finding:
    if info.get("role") not in (None, "master"):
        said = "this Redis is a replica and takes no writes"
        return Finding("role", PROBLEM, said, "give the master's address")
    return Finding("role", OK, "master")


def parse_info(text: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in text.decode().splitlines() if ":" in line)
    return {name: value.strip() for name, _, value in lines}

"""What must be true of Redis before the bus trusts it with events."""

from __future__ import annotations

import logging
import sys

from routemaster.bus import Bus
from routemaster.errors import StoreUnavailable

WAIT_S = 30.0
TURN_S = 0.1
OLDEST = (7, 0)
# sysexits.h: the service is not there; the configuration is wrong.
UNAVAILABLE, MISCONFIGURED = 69, 78

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
    for warning in warnings:
        log.warning(warning)
    for problem in problems:
        log.error(problem)
    if problems:
        sys.exit(MISCONFIGURED)


def inspect(bus: Bus) -> tuple[list[str], list[str]]:
    """What makes this Redis unfit, and what the operator should know."""
    info = parse_info(bus.link.call("INFO"))
    problems, warnings = [], []
    version = info.get("redis_version", "0")
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        problems.append(f"Redis {version} is too old: 7.0 or later is needed")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        problems.append(
            f"Redis may throw events away: maxmemory-policy is {policy}; "
            "run `redis-cli config set maxmemory-policy noeviction`"
        )
    if info.get("aof_enabled") != "1":
        warnings.append(
            "Redis keeps no append-only file: a crash loses what came since its last snapshot; "
            "run `redis-cli config set appendonly yes`"
        )
    if info.get("role") not in (None, "master"):
        problems.append("this Redis is a replica and takes no writes: give the master's address")
    return problems, warnings


def parse_info(text: bytes) -> dict[str, str]:
    lines = (line.partition(":") for line in text.decode().splitlines() if ":" in line)
    return {name: value.strip() for name, _, value in lines}

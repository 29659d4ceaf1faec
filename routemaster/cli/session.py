"""What the operator's subcommands share: the bus they look at, and how they say things."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import click
from rich.console import Console

from routemaster import bus as bus_module
from routemaster.bus import Bus
from routemaster.dotenv import read_settings
from routemaster.errors import RoutemasterError, StoreUnavailable

F = TypeVar("F", bound=Callable[..., Any])
# Redis may be busy with what the operator wants to look at.
PATIENCE_S = 5.0


def console() -> Console:
    return Console(soft_wrap=not sys.stdout.isatty(), highlight=False)


@contextmanager
def a_bus() -> Iterator[Bus]:
    """The bus of this folder's settings. What goes wrong is one line that says what to do."""
    settings = read_settings()
    patient = max(settings.redis_timeout_s, PATIENCE_S)
    bus = bus_module.assemble(replace(settings, redis_timeout_s=patient))
    try:
        yield bus
    except StoreUnavailable as error:
        where = "ROUTEMASTER_REDIS_URL" if bus.settings.redis_url else "`make start`"
        raise click.ClickException(
            f"Redis is {error.reason}. Is it running? Look at {where}."
        ) from error
    except RoutemasterError as error:
        raise click.ClickException(error.error) from error
    finally:
        bus.link.close()


def json_option(function: F) -> F:
    decorate = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
    return decorate(function)


def print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2, default=str))


def number(value: float) -> str:
    return f"{value:,.0f}"


def size(value: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:,.0f} {unit}" if unit == "B" else f"{value:,.1f} {unit}"
        value /= 1024
    raise AssertionError


def age(ms: float) -> str:
    seconds = max(0, ms) / 1000
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"

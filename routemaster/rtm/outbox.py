from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from routemaster.client import BusError
from routemaster.rtm.session import Session, with_bus

if TYPE_CHECKING:
    from routemaster.client.outbox import Drainer

TABLE = "routemaster_outbox"


@click.group("outbox")
def command() -> None:
    """Events that were written within a database's transactions."""


@command.command("drain")
@click.option("--database", required=True, metavar="URL", help="As SQLAlchemy spells it.")
@click.option("--table", default=TABLE, show_default=True)
@click.option("--once", is_flag=True, help="End when the table is empty.")
@click.option("--every", type=click.FloatRange(0.01), default=1.0, show_default=True, metavar="S",
              help="How often to look for new events.")  # fmt: skip
@with_bus
def drain(session: Session, database: str, table: str, once: bool, every: float) -> None:
    """Sends them in order and deletes them, until Ctrl-C. Any number of these may run."""
    with told_to_stop() as stopping, drainer_of(session, database, table) as drainer:
        while not stopping.is_set():
            sent = attempt(drainer, once)
            if sent:
                click.echo(f"{sent} events sent", err=True)
            if once:
                break
            if not sent:
                stopping.wait(every)
        refused = drainer.waiting().refused
    if refused:
        raise click.ClickException(f"{refused} events are refused by the bus: see column `error`")


@command.command("status")
@click.option("--database", required=True, metavar="URL")
@click.option("--table", default=TABLE, show_default=True)
@with_bus
def status(session: Session, database: str, table: str) -> None:
    """How many events wait, and how many the bus has refused."""
    with drainer_of(session, database, table) as drainer:
        found = drainer.waiting()
    session.rows([{"waiting": found.events, "refused": found.refused}], "waiting", "refused")


@contextmanager
def told_to_stop() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM, which then interrupt nothing."""
    stopping = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stopping.set()) for number in numbers]
    try:
        yield stopping
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def attempt(drainer: Drainer, once: bool) -> int:
    try:
        return drainer.drain()
    except BusError as problem:
        if once:
            raise
        click.echo(f"{problem}; trying again", err=True)
        return 0


@contextmanager
def drainer_of(session: Session, database: str, table: str) -> Iterator[Drainer]:
    try:
        from sqlalchemy import MetaData, create_engine
        from sqlalchemy.exc import SQLAlchemyError

        from routemaster.client.outbox import Drainer, Outbox
    except ImportError:
        raise click.ClickException("install sqlalchemy: pip install sqlalchemy") from None
    try:
        engine = create_engine(database)
        try:
            yield Drainer(engine, Outbox(MetaData(), table), session.client)
        finally:
            engine.dispose()
    except (SQLAlchemyError, ImportError) as problem:
        raise click.ClickException(str(problem).splitlines()[0]) from None

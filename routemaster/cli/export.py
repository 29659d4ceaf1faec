"""`routemaster export`: what the bus did, into files for reports."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import click

from routemaster import log as log_module
from routemaster.bus import Bus, is_exporting
from routemaster.checks import NO_PYARROW
from routemaster.cli.session import a_bus, json_option, number, print_json
from routemaster.domain.datasets import DATASETS
from routemaster.errors import StoreUnavailable

TIDY_S = 3600.0
log = logging.getLogger("routemaster.export")


@click.group(invoke_without_command=True)
@click.option("--follow", is_flag=True,
              help="Go on, every ROUTEMASTER_EXPORT_INTERVAL, until stopped; once an hour compact "
              "the days that are over and drop those past retention.")  # fmt: skip
@json_option
@click.pass_context
def command(ctx: click.Context, follow: bool, as_json: bool) -> None:
    """Write what the bus did since the last time to files (see ROUTEMASTER_EXPORT_URL).

    Workers do so by themselves. Any number of exporters may run: no row is written twice.
    """
    if ctx.invoked_subcommand:
        return
    with an_export() as (bus, kit):
        if follow:
            log_module.configure(bus.settings.log_level, "export")
            go_on(bus, kit)
            return
        exporter = kit.Exporter(bus)
        turn = exporter.turn()
        kit.tidy(exporter.folder, bus.clock.now_ms(), bus.settings.export_retention_days)
    if as_json:
        print_json(turn.rows)
    else:
        told = ", ".join(f"{number(count)} {name}" for name, count in turn.rows.items())
        click.echo(f"exported {told}")


@command.command()
@click.option("--dataset", "names", multiple=True, type=click.Choice(list(DATASETS)),
              help="Only this; may be given several times.")  # fmt: skip
@click.option("--since", default="", metavar="DATE", help="Only days from this one on.")
@click.option("--today", is_flag=True, help="Today's files too, though more will come.")
@click.option("--grace", "grace_s", default=3600.0, show_default=True, metavar="SECONDS",
              type=click.FloatRange(0),
              help="Keep what was compacted so long, for who is reading it.")  # fmt: skip
@json_option
def compact(names: tuple[str, ...], since: str, today: bool, grace_s: float, as_json: bool) -> None:
    """Make one sorted file out of a day's many; for days that are over."""
    with an_export() as (bus, kit):
        before = "9999" if today else kit.date_of(bus.clock.now_ms())
        folder = kit.Folder.of(bus.settings.export_url)
        chosen = [DATASETS[name] for name in names or DATASETS]
        done = kit.compact(folder, chosen, since=since, before=before, grace_s=grace_s)
        kit.tidy(folder, bus.clock.now_ms(), 0)
    if as_json:
        print_json([{"path": one.path, "files": one.files, "rows": one.rows} for one in done])
        return
    for one in done:
        click.echo(f"{one.path}: {number(one.rows)} rows of {number(one.files)} files")
    if not done:
        click.echo("nothing to compact")


@command.command()
@click.option("--days", default=None, type=click.IntRange(1),
              help="Instead of ROUTEMASTER_EXPORT_RETENTION.")  # fmt: skip
@json_option
def retain(days: int | None, as_json: bool) -> None:
    """Drop what is older than ROUTEMASTER_EXPORT_RETENTION days."""
    with an_export() as (bus, kit):
        kept = bus.settings.export_retention_days if days is None else days
        gone = kit.tidy(kit.Folder.of(bus.settings.export_url), bus.clock.now_ms(), kept)
    if as_json:
        print_json(gone)
        return
    for path in gone:
        click.echo(f"dropped {path}")
    if not gone:
        click.echo("nothing is that old")


@command.command()
@click.argument("name", metavar="DATASET", type=click.Choice(list(DATASETS)))
@click.option("--since", default="", metavar="DATE", help="Only days from this one on.")
@json_option
def files(name: str, since: str, as_json: bool) -> None:
    """Print the files of a dataset that are good to read; on standard error, what is wrong with
    the others."""
    with an_export() as (bus, kit):
        found = kit.listing(kit.Folder.of(bus.settings.export_url), DATASETS[name], since)
    for bad in found.skipped:
        if not bad.is_covered:
            click.echo(f"{bad.path}: {bad.why}", err=True)
    paths = [file.path for file in found.files]
    if as_json:
        print_json(paths)
    else:
        click.echo("".join(f"{path}\n" for path in paths), nl=False)


@contextmanager
def an_export() -> Iterator[tuple[Bus, ModuleType]]:
    with a_bus() as bus:
        if not bus.settings.export_url:
            raise click.ClickException("the export is off: set ROUTEMASTER_EXPORT_URL")
        if not is_exporting(bus.settings):
            raise click.ClickException(NO_PYARROW)
        from routemaster.export import kit

        try:
            yield bus, kit
        except kit.FAULTS as error:
            raise click.ClickException(
                f"cannot export: {kit.said(error, bus.settings.export_url)}"
            ) from None


def go_on(bus: Bus, kit: ModuleType) -> None:
    stop = threading.Event()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_number, lambda *_: stop.set())
    exporter, tidy_at_ms = kit.Exporter(bus), 0
    log.info("exporting url=%s", kit.mask_url(bus.settings.export_url))
    while not stop.is_set():
        began_ms = bus.clock.mono_ms()
        try:
            turn = exporter.turn(stop.is_set)
            told = " ".join(f"{name}={count}" for name, count in turn.rows.items())
            log.info("exported %s ms=%s", told, bus.clock.mono_ms() - began_ms)
            if began_ms >= tidy_at_ms:
                tidy_at_ms = began_ms + round(TIDY_S * 1000)
                keep_tidy(bus, kit, exporter.folder, stop)
        except StoreUnavailable as error:
            log.warning("store unavailable reason=%s", error.reason)
        except kit.FAULTS as error:
            log.error("cannot export why=%s", kit.said(error, bus.settings.export_url))
        took_s = (bus.clock.mono_ms() - began_ms) / 1000
        stop.wait(max(0.0, bus.settings.export_interval_s - took_s))
    log.info("stopped")


def keep_tidy(bus: Bus, kit: ModuleType, folder: object, stop: threading.Event) -> None:
    now_ms = bus.clock.now_ms()
    for one in kit.compact(folder, before=kit.date_of(now_ms), is_over=stop.is_set):
        log.info("compacted file=%s files=%s rows=%s", one.path, one.files, one.rows)
    for path in kit.tidy(folder, now_ms, bus.settings.export_retention_days):
        log.info("dropped folder=%s", path)

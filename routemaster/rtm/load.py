from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TextIO

import click

from routemaster.client import Event
from routemaster.rtm.session import Session, progress, with_bus

FIELDS = {"type", "url", "timestamp", "t", "data", "facet", "target", "id"}


@click.command("load")
@click.argument("topic")
@click.argument("file", type=click.File(encoding="utf-8"))
@with_bus
def command(session: Session, topic: str, file: TextIO) -> None:
    """Publishes FILE (- is standard input), which holds one event in JSON on each line.

    In order. When it breaks off it says how many are published; give the events ids to be able to
    start over."""
    done = 0

    def told(count: int) -> None:
        nonlocal done
        done = count
        show(count)

    with progress(f"publishing to {topic}", None) as show:
        try:
            done = session.client.publish_many(topic, events(file), progress=told)
        except BaseException:
            click.echo(f"{done} events are published", err=True)
            raise
    if session.as_json:
        session.json({"published": done})
    else:
        click.echo(f"{done} events are published")


def events(file: TextIO) -> Iterator[Event]:
    for number, line in enumerate(file, 1):
        if line.strip():
            yield event(line, number)


def event(line: str, number: int) -> Event:
    try:
        fields = json.loads(line)
    except ValueError as problem:
        raise click.ClickException(f"line {number}: must be JSON ({problem})") from None
    if not isinstance(fields, dict) or not {"type", "url"} <= set(fields) <= FIELDS:
        raise click.ClickException(f"line {number}: must be an event with `type` and `url`")
    at = fields.pop("timestamp", None)
    fields.setdefault("t", at)
    return Event(**fields)

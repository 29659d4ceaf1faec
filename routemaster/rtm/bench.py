from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import click

from routemaster.client import BackgroundPublisher, Event
from routemaster.rtm.session import Session, progress, with_bus


@click.command("bench")
@click.argument("topic")
@click.option("--events", type=click.IntRange(1, 10_000_000), default=10_000, show_default=True)
@click.option("--url", default="https://bench.example/", show_default=True, help="Their URLs.")
@with_bus
def command(session: Session, topic: str, events: int, url: str) -> None:
    """Publishes `noop` events to TOPIC and says how long the bus took. They are real events: its
    subscribers get them."""
    rows = [
        measured("one by one", min(events, 1000), lambda n: one_by_one(session, topic, url, n)),
        measured("in bulk", events, lambda n: in_bulk(session, topic, url, n)),
        measured("in the background", events, lambda n: in_background(session, topic, url, n)),
    ]
    session.rows(rows, "how", "events", "seconds", "events_per_s")


def measured(how: str, events: int, publish: Callable[[int], None]) -> dict[str, object]:
    began_s = time.monotonic()
    publish(events)
    took_s = max(time.monotonic() - began_s, 1e-9)
    return {
        "how": how,
        "events": events,
        "seconds": round(took_s, 3),
        "events_per_s": round(events / took_s),
    }


def made(url: str, count: int) -> Iterator[Event]:
    return (Event("noop", f"{url}{number}") for number in range(count))


def one_by_one(session: Session, topic: str, url: str, count: int) -> None:
    with progress("one by one", count) as show:
        for number, event in enumerate(made(url, count), 1):
            session.client.publish(topic, event)
            show(number)


def in_bulk(session: Session, topic: str, url: str, count: int) -> None:
    with progress("in bulk", count) as show:
        session.client.publish_many(topic, made(url, count), progress=show)


def in_background(session: Session, topic: str, url: str, count: int) -> None:
    with BackgroundPublisher(session.client, exit_timeout=60) as publisher:
        for event in made(url, count):
            publisher.publish(topic, event)

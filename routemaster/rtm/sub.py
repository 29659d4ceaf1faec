from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

import click

from routemaster.rtm.session import Session, with_bus


@click.group("sub")
def command() -> None:
    """Subscriptions. --token is the subscriber's, not the root key."""


@command.command("add")
@click.argument("words", metavar="URL TOPIC [TOPIC...]", nargs=-1)
@click.option("-c", "--callback", metavar="URL", help="The callback, if not the first argument.")
@click.option("-o", "--topics", metavar="A,B", help="The topics, if not the other arguments.")
@click.option("--latency", type=int, metavar="MS", help="How long a batch may wait to fill.")
@click.option("--batch-size", "--max", type=int, metavar="COUNT", help="Most events in a batch.")
@click.option("--concurrency", type=int, metavar="COUNT", help="Lanes that go side by side.")
@click.option("--uuid", help="What the bus shows to the callback; by default the token.")
@with_bus
def add(
    session: Session,
    words: tuple[str, ...],
    callback: str | None,
    topics: str | None,
    latency: int | None,
    batch_size: int | None,
    concurrency: int | None,
    uuid: str | None,
) -> None:
    """Adds or replaces the subscription: its callback, and all its topics (names or patterns)."""
    left = list(words)
    if callback is None and left:
        callback = left.pop(0)
    wanted = left + [name for name in (topics or "").split(",") if name]
    if callback is None or not wanted:
        raise click.UsageError("a callback URL and at least one topic are required")
    callback, user = without_user(callback)
    session.client.subscribe(
        wanted,
        callback,
        uuid or user or session.token,
        timeout=latency,
        max=batch_size,
        concurrency=concurrency,
    )


@command.command("del")
@click.argument("topics", metavar="[TOPIC...]", nargs=-1)
@click.option("-o", "--topics", "more", metavar="A,B", default="", help="More topics.")
@with_bus
def delete(session: Session, topics: tuple[str, ...], more: str) -> None:
    """Unsubscribes from these topics; without any, removes the subscription and its backlog."""
    wanted = [*topics, *(name for name in more.split(",") if name)]
    if wanted:
        session.client.unsubscribe(*wanted)
    else:
        session.client.unsubscribe_all()


@command.command("list")
@with_bus
def listed(session: Session) -> None:
    """The token's own subscription, or with the root key all."""
    rows = session.client.subscribers()
    if not session.as_json:
        rows = [{**row, "queued": row["events"]["queued"], "sent": row["events"]["sent"],
                 "health": row["health_points"]} for row in rows]  # fmt: skip
    columns = "subscriber state health queued sent callback topics".split()
    session.rows(rows, *columns)


@command.command("pause")
@click.argument("subscriber", required=False)
@with_bus
def pause(session: Session, subscriber: str | None) -> None:
    """Stops deliveries; events go on being queued. Root names the SUBSCRIBER."""
    session.client.pause(subscriber)


@command.command("resume")
@click.argument("subscriber", required=False)
@with_bus
def resume(session: Session, subscriber: str | None) -> None:
    """Goes on with deliveries, also after the callback has answered 410."""
    session.client.resume(subscriber)


@command.command("secret")
@click.option("--rotate", is_flag=True, help="Replace it; the old one signs too for 24 hours.")
@with_bus
def secret(session: Session, rotate: bool) -> None:
    """Prints the secret that signs deliveries."""
    found = session.client.rotate_secret() if rotate else session.client.secret()
    if session.as_json:
        session.json({"secret": found})
    else:
        click.echo(found)


def without_user(url: str) -> tuple[str, str | None]:
    """The original took the uuid as the URL's user name."""
    parts = urlsplit(url)
    if not parts.username:
        return url, None
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])), parts.username

from __future__ import annotations

import base64
import http.client
import json
import urllib.error
import urllib.request
import uuid
from datetime import UTC, datetime
from typing import Any

import click

from routemaster.client import Live
from routemaster.rtm.session import Session, shown, with_bus

ANSWERED_WITHIN_S = 20.0


@click.command("listen")
@click.argument("topic")
@click.option("--forward", metavar="URL", help="Relay each event to this URL, as the bus would.")
@click.option("--uuid", "user", default="rtm", help="What --forward shows as Basic user name.")
@click.option("--count", type=click.IntRange(1), help="End after so many events.")
@with_bus
def command(
    session: Session, topic: str, forward: str | None, user: str, count: int | None
) -> None:
    """Shows TOPIC's events as they are published, until Ctrl-C.

    With --forward http://localhost:3000/events each is POSTed there as a batch of one: a subscriber
    in development needs no address that the bus can reach. It is not signed, and comes once."""
    if forward and not forward.startswith(("http://", "https://")):
        raise click.BadParameter("must be a URL", param_hint="--forward")
    seen = 0
    try:
        for live in session.client.listen(topic):
            if live.event is None:
                click.echo(f"{live.missed} events were missed here", err=True)
                continue
            show(session, live.event)
            if forward:
                click.echo(f"  {relay(forward, user, live)}", err=True)
            seen += 1
            if seen == count:
                return
    except KeyboardInterrupt:
        click.echo(err=True)


def show(session: Session, event: dict[str, Any]) -> None:
    if session.as_json:
        click.echo(json.dumps(event))
        return
    at = datetime.fromtimestamp(event["t"] / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
    kind = click.style(f"{event['type']:6}", fg=TYPES.get(event["type"]))
    extra = {name: event[name] for name in ("data", "facet") if name in event}
    click.echo(f"{at}  {kind}  {shown(event['url'])}  {shown(json.dumps(extra)) if extra else ''}")


TYPES = {"create": "green", "update": "yellow", "delete": "red", "noop": "cyan"}


def relay(url: str, user: str, live: Live) -> str:
    """What came of it, in a word."""
    credentials = base64.b64encode(f"{user}:x".encode()).decode()
    request = urllib.request.Request(
        url,
        json.dumps([live.event]).encode(),
        {
            "Content-Type": "application/json",
            "Authorization": f"Basic {credentials}",
            "webhook-id": f"rtm-{uuid.uuid4().hex}",
            "Routemaster-Attempt": "1",
            "Routemaster-Lane": "0",
            "Routemaster-Sequence": f"{live.number}-{live.number}",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=ANSWERED_WITHIN_S) as answer:
            return f"-> {answer.status}"
    except urllib.error.HTTPError as error:
        error.close()
        return f"-> {error.code}"
    except (OSError, http.client.HTTPException) as error:
        return f"-> {error}"

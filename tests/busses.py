"""A bus on a test's Redis, and the few verbs tests speak in."""

from __future__ import annotations

from routemaster.bus import Bus
from routemaster.clients import add_token
from routemaster.domain.subscription import Subscription
from routemaster.identity import Credentials
from routemaster.publish import Publication
from routemaster.store.events import Stored
from routemaster.subscribe import subscribe


def token_of(name: str) -> str:
    return f"{name.replace(':', '_')}--0123456789abcdef"


def give_token(bus: Bus, name: str) -> str:
    add_token(bus, name, token_of(name))
    return token_of(name)


def subscription(*topics: str, **fields: object) -> Subscription:
    body = {"topics": list(topics), "callback": "https://sub.example/", "uuid": "u", **fields}
    return Subscription.parse(body, allow_http=False, allowed_networks=[])


def follow(bus: Bus, name: str, *topics: str, **fields: object) -> None:
    subscribe(bus, name, subscription(*topics, **fields))


def publish(bus: Bus, publisher: str, topic: str, body: bytes, key: str = "") -> Stored:
    credentials = Credentials(f"Bearer {token_of(publisher)}")
    return bus.publisher.publish(Publication(credentials, topic, body, idempotency_key=key))


def event(number: int = 1, **fields: object) -> dict[str, object]:
    return {"type": "update", "url": f"https://pub.example/{number}", "timestamp": number, **fields}

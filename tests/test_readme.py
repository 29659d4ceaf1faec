"""What the README tells a subscriber is what a subscriber gets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import WebhookVerificationError

from routemaster.bus import Bus, assemble
from routemaster.delivery.message import Message, compose
from tests.busses import event, follow, give_token, publish

README = (Path(__file__).resolve().parent.parent / "README.md").read_text()
RECEIVING = README.split("\n## Receiving\n", 1)[1].split("\n## ", 1)[0]
Receive = Callable[[dict[str, str], bytes], list[dict[str, Any]]]


@pytest.fixture
def bus(settings):
    made = assemble(settings)
    give_token(made, "shop")
    follow(made, "mailer", "orders", max=2)
    publish(made, "shop", "orders", json.dumps([event(1), event(2)]).encode())
    yield made
    made.link.close()


def sent(bus: Bus) -> Message:
    """The batch as it goes out now; it stays queued."""
    taken = bus.main.take("worker", "lease", 60_000, 1)
    [lease] = taken.leases
    bus.main.nack(lease.job, lease.fence, 0, attempted=False)
    assert lease.batch and lease.receiver
    return compose(lease.batch, lease.receiver, taken.now_ms, lease.dropped)


def headers_of(message: Message) -> dict[str, str]:
    pairs = [line.partition(":") for line in message.headers]
    return {name: value.strip() for name, _, value in pairs if value}


def receiver(secret: str | None) -> Receive:
    """The README's own lines, with a secret filled in."""
    [code] = re.findall(r"^```python\n(.*?)^```", RECEIVING, re.M | re.S)
    assert secret and code.count('"whsec_..."') == 1
    scope: dict[str, Any] = {}
    exec(code.replace("whsec_...", secret), scope)
    receive: Receive = scope["receive"]
    return receive


def test_the_headers_are_the_headers(bus):
    publish(bus, "shop", "orders", json.dumps([event(3)]).encode())
    bus.lanes.drop("mailer", "0", 1, "memory")
    table = re.findall(r"^\| `([\w-]+)` \|", RECEIVING, re.M)
    assert sorted(table) == sorted(headers_of(sent(bus)))


def test_verifying_as_the_readme_does(bus):
    message = sent(bus)
    receive = receiver(bus.subscribers.secret("mailer"))
    events = receive(headers_of(message), message.body)
    assert [e["url"] for e in events] == ["https://pub.example/1", "https://pub.example/2"]
    assert set(events[0]) <= set(re.findall(r'"(\w+)"', RECEIVING.split("\n| ")[0]))
    with pytest.raises(WebhookVerificationError):
        receive(headers_of(message), message.body.replace(b"pub", b"bad"))
    with pytest.raises(WebhookVerificationError):
        receive({**headers_of(message), "webhook-id": "another"}, message.body)


def test_while_a_secret_is_replaced_both_verify(bus):
    secrets = [bus.subscribers.secret("mailer"), "whsec_" + "QUJD" * 8]
    bus.subscribers.set_secret("mailer", secrets[1])
    message = sent(bus)
    for secret in secrets:
        assert receiver(secret)(headers_of(message), message.body)
    bus.subscribers.set_secret("mailer", "whsec_" + "REVG" * 8)
    message = sent(bus)
    assert receiver(secrets[1])(headers_of(message), message.body)
    with pytest.raises(WebhookVerificationError):
        receiver(secrets[0])(headers_of(message), message.body)


def test_a_subscription_without_secret_is_sent_unsigned(bus):
    bus.link.call("HDEL", bus.keys.subscriber("mailer"), "secret")
    assert headers_of(sent(bus))["webhook-signature"] == ""

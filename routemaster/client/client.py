"""The bus's API as methods."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from routemaster.client.bulk import BulkSender, keyed, new_key
from routemaster.client.errors import InvalidRequest
from routemaster.client.event import MAX_DATA_BYTES, Event
from routemaster.client.http import Answer, Transport
from routemaster.client.pulled import Pulled
from routemaster.client.stream import Live, listen
from routemaster.client.verbs import Verbs
from routemaster.domain.names import parse_topic
from routemaster.domain.signature import new_secret
from routemaster.domain.token import new_token
from routemaster.errors import InvalidInput

JSON = {"Content-Type": "application/json"}


class Client(Verbs):
    """Publishes and subscribes with a client's token, administers with the root key.

    Every method returns when the bus has done it, and raises a BusError (`client/errors.py` draws
    the tree) when it has not. Calls are made again after a lost connection, 429 and 5xx, until
    `deadline` seconds are over; none of them can take effect twice. One Client may be shared by
    threads, and used after a fork.

    `max_data_bytes` is the bus's ROUTEMASTER_MAX_EVENT_DATA. `verify` is as in requests: False, or
    a file of certificates. Time-outs are in seconds."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 5.0,
        deadline: float = 30.0,
        max_data_bytes: int = MAX_DATA_BYTES,
        verify: bool | str = True,
    ) -> None:
        self.http = Transport(url, token, timeout, deadline, verify)
        self.max_data_bytes = max_data_bytes
        self._bulk = BulkSender(self.http)

    def __repr__(self) -> str:
        return f"Client({self.http.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.http.close()

    # Publishing

    def publish(self, topic: str, event: Event) -> None:
        """One event. Give it an `id` to be able to publish it again later, should this fail:
        the bus stores an id once in 24 hours."""
        line = event.encoded(self.max_data_bytes)
        headers = JSON if event.id else {**JSON, **self._key()}
        self.http.call("POST", f"/topics/{checked_topic(topic)}", line.encode(), headers)

    def publish_many(
        self,
        topic: str,
        events: Iterable[Event],
        *,
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """In order, in requests of a thousand; `events` may be endless. Returns their number.

        When it fails, what was sent before stays published: `progress` is told after each request
        how many that are. Give events ids to be able to start over."""
        return self._bulk.send_all(checked_topic(topic), self._lines(events), progress)

    def _lines(self, events: Iterable[Event]) -> Iterator[str]:
        for position, event in enumerate(events):
            try:
                yield event.encoded(self.max_data_bytes)
            except InvalidRequest as problem:
                problem.detail["position"] = position
                raise

    # Topics and subscriptions

    def topics(self) -> list[dict[str, Any]]:
        return list(self._get("/topics") or [])

    def delete_topic(self, topic: str) -> None:
        self._delete(f"/topics/{checked_topic(topic)}")

    def subscribe(
        self,
        topics: Sequence[str],
        callback: str | None = None,
        uuid: str | None = None,
        *,
        timeout: int | None = None,
        max: int | None = None,
        concurrency: int | None = None,
    ) -> None:
        """Replaces the subscription's settings and its list of topics (names or patterns).
        `timeout` is milliseconds that a batch may wait to fill, `max` events in a batch. Without
        callback batches wait to be pulled."""
        if isinstance(topics, str):
            raise InvalidRequest("topics: must be a list", detail={"field": "topics"})
        optional: dict[str, object] = {"callback": callback, "uuid": uuid}
        optional |= {"timeout": timeout, "max": max, "concurrency": concurrency}
        given = {name: value for name, value in optional.items() if value is not None}
        self._post("/subscription", {"topics": list(topics)} | given)

    def unsubscribe(self, *topics: str) -> None:
        """From these topics; what is queued stays."""
        for topic in [checked_topic(topic) for topic in topics]:
            self._delete(f"/subscription/topics/{topic}")

    def unsubscribe_all(self) -> None:
        """Removes the subscription and all that is queued for it."""
        self._delete("/subscription")

    def subscribers(self) -> list[dict[str, Any]]:
        """One's own, or with the root key all."""
        return list(self._get("/subscribers") or [])

    def delete_subscriber(self, name: str) -> None:
        self._delete(f"/subscribers/{quote(name, safe='')}")

    def pause(self, subscriber: str | None = None) -> None:
        self._post(self._of(subscriber, "pause"))

    def resume(self, subscriber: str | None = None) -> None:
        self._post(self._of(subscriber, "resume"))

    # Pulling, for a subscription without callback

    def pull(self, *, wait: int = 0, lease: int = 30) -> Pulled | None:
        """The oldest batch, or None when there is none within `wait` seconds (to 30). It is one's
        own for `lease` seconds: then, unless `done`, it comes again."""
        # With a key, so that a lost answer does not leave a batch leased to nobody.
        headers = {"Idempotency-Key": new_key()}
        answer = self.http.call(
            "GET", f"/subscription/batch?wait={wait:d}&lease={lease:d}", None, headers, wait_s=wait
        )
        return Pulled.of(answer) if answer.status == 200 else None

    def done(self, batch: Pulled) -> None:
        """It is processed, and forgotten. Raises Conflict when its lease is over."""
        path = f"/subscription/batch/{quote(batch.id, safe='')}"
        self.http.call("DELETE", path, None, batch.fence, is_gone_fine=True)

    def refuse(self, batch: Pulled, *, delay: int | None = None) -> None:
        """It is not processed, and comes again, after `delay` milliseconds."""
        path = f"/subscription/batch/{quote(batch.id, safe='')}/refuse"
        body = None if delay is None else json.dumps({"delay": delay}).encode()
        self.http.call("POST", path, body, (JSON if body else {}) | batch.fence)

    def renew(self, batch: Pulled, *, lease: int = 30) -> None:
        """Its lease begins anew."""
        path = f"/subscription/batch/{quote(batch.id, safe='')}/renew?lease={lease:d}"
        self.http.call("POST", path, None, batch.fence)

    def listen(self, topic: str) -> Iterator[Live]:
        """A topic's events from now on, for ever, also over a restart of the bus. For looking on:
        what is missed is not kept for a listener, only counted."""
        return listen(self.http, checked_topic(topic))

    # Signing secrets

    def secret(self) -> str:
        """What signs one's deliveries."""
        return str(self._get("/subscription/secret")["secret"])

    def rotate_secret(self, secret: str | None = None) -> str:
        """Returns the new one. The old one signs too for 24 hours."""
        # Made here, because a repeated call for any new one would replace twice.
        wanted = {"secret": secret or new_secret()}
        return str(self._post("/subscription/secret", wanted).json["secret"])

    # Operations: what became of deliveries

    def operation(self, id: str) -> dict[str, Any]:
        return dict(self._get(f"/operations/{quote(id, safe='')}"))

    def operations(
        self,
        *,
        subscriber: str | None = None,
        status: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> dict[str, Any]:
        """A page of them, newest first: `operations`, `counts`, and `next`, to be given as
        `before`. Root names the subscriber."""
        asked = {"subscriber": subscriber, "status": status, "limit": limit, "before": before}
        query = "&".join(f"{k}={quote(str(v), safe='')}" for k, v in asked.items() if v is not None)
        return dict(self._get("/subscription/operations" + (f"?{query}" if query else "")))

    def redeliver(self, id: str) -> None:
        self._post(f"/operations/{quote(id, safe='')}/redeliver")

    # Tokens: with the root key

    def tokens(self) -> list[dict[str, Any]]:
        """Names, and masked tokens."""
        return list(self._get("/api_tokens") or [])

    def add_token(self, name: str, token: str | None = None) -> str:
        """Returns the token; the bus shows it never again."""
        # Made here for the same reason as a secret: then a repeated call finds it there.
        wanted = {"name": name, "token": token or new_token(name)}
        try:
            self._post("/api_tokens", wanted)
        except InvalidRequest as problem:
            if token is not None or problem.rule != "is in use already":
                raise
        return wanted["token"]

    def delete_token(self, token: str) -> None:
        """By the token, or by its masked form."""
        self._delete(f"/api_tokens/{quote(token, safe='')}")

    # Health

    def pulse(self) -> None:
        """Returns when the bus takes events, and knows this token."""
        self._get("/pulse")

    def _key(self) -> dict[str, str]:
        return keyed(new_key(), self.http.remember_s)

    def _of(self, subscriber: str | None, verb: str) -> str:
        if subscriber is None:
            return f"/subscription/{verb}"
        return f"/subscribers/{quote(subscriber, safe='')}/{verb}"

    def _get(self, path: str) -> Any:
        return self.http.call("GET", path).json

    def _post(self, path: str, body: object = None) -> Answer:
        if body is None:
            return self.http.call("POST", path)
        return self.http.call("POST", path, json.dumps(body).encode(), JSON)

    def _delete(self, path: str) -> None:
        self.http.call("DELETE", path, is_gone_fine=True)


def checked_topic(topic: str) -> str:
    try:
        return parse_topic(topic)
    except InvalidInput as problem:
        raise InvalidRequest.of(problem) from None

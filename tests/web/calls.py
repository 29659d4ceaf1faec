"""How the tests speak to the API, and how they look at all of Redis."""

from __future__ import annotations

import base64
import json
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.servers import RedisServer

EVENT = {"type": "update", "url": "https://pub.example/1", "timestamp": 1}
SUBSCRIPTION = {"topics": ["orders"], "callback": "https://sub.example/", "uuid": "secret-uuid"}


def basic(token: str, password: str = "x") -> str:
    return "Basic " + base64.b64encode(f"{token}:{password}".encode()).decode()


class Caller:
    """A client of the API with one token, or none."""

    def __init__(self, http: FlaskClient, token: str | None = None) -> None:
        self.http = http
        self.token = token

    def call(self, method: str, path: str, body: object = None, **options: Any) -> TestResponse:
        headers = dict(options.pop("headers", {}))
        if self.token is not None:
            headers.setdefault("Authorization", basic(self.token))
        if body is not None and "data" not in options:
            options["data"] = body if isinstance(body, bytes) else json.dumps(body)
            options.setdefault("content_type", "application/json")
        return self.http.open(path, method=method, headers=headers, **options)

    def get(self, path: str, **options: Any) -> TestResponse:
        return self.call("GET", path, **options)

    def post(self, path: str, body: object = None, **options: Any) -> TestResponse:
        return self.call("POST", path, body, **options)

    def delete(self, path: str, **options: Any) -> TestResponse:
        return self.call("DELETE", path, **options)

    def publish(self, topic: str, *events: object, **options: Any) -> TestResponse:
        body = list(events) if len(events) != 1 else events[0]
        return self.post(f"/topics/{topic}", body, **options)

    def follow(self, *topics: str, **fields: object) -> TestResponse:
        return self.post("/subscription", {**SUBSCRIPTION, "topics": list(topics), **fields})

    def subscriptions(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.get("/subscriptions").get_json()
        return listed

    def queued(self) -> int:
        [mine] = self.subscriptions()
        queued: int = mine["events"]["queued"]
        return queued


def dump(server: RedisServer) -> dict[bytes, bytes | None]:
    """Every key with its value as Redis would write it out."""
    with server.client() as redis:
        return {key: redis.dump(key) for key in redis.scan_iter(count=1000)}


def stored_text(server: RedisServer) -> bytes:
    """All keys and values as plain bytes: what somebody with a copy of the database can read."""
    read = {
        b"string": lambda redis, key: redis.get(key),
        b"hash": lambda redis, key: redis.hgetall(key),
        b"set": lambda redis, key: redis.smembers(key),
        b"zset": lambda redis, key: redis.zrange(key, 0, -1),
        b"list": lambda redis, key: redis.lrange(key, 0, -1),
    }
    with server.client() as redis:
        found = [(key, read[redis.type(key)](redis, key)) for key in redis.scan_iter()]
    return repr(found).encode()

"""Hearing that something came due, or that a subscription changed: the bus's pub/sub channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from redis import exceptions as redis_errors

from routemaster.errors import StoreUnavailable
from routemaster.store.keys import Keys
from routemaster.store.link import Link

# Messages read in one turn: a storm of them must not keep a dispatcher from its work.
MOST_MESSAGES = 1000
CHANGED = b"s:"


@dataclass(frozen=True, slots=True)
class Heard:
    """When things become due, ms; whose subscription is gone, or another; and whether that was
    all that was said until now."""

    due_ms: list[int]
    changed: set[str]
    is_all: bool


class WakeUps:
    """A message may be missed (a lost connection): listeners look by themselves once a second, and
    act on nothing that they know from earlier while they do not hear."""

    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._channel = keys.wake_channel
        self._connection: Any = None

    def connect(self) -> int:
        """Subscribes, and returns the file descriptor to wait on. Raises StoreUnavailable."""
        connection = self._link.own_connection()
        try:
            connection.connect()
            connection.send_command("SUBSCRIBE", self._channel)
            connection.read_response()
        except (redis_errors.RedisError, OSError) as error:
            connection.disconnect()
            raise StoreUnavailable("down") from error
        self._connection = connection
        descriptor: int = connection._sock.fileno()
        return descriptor

    def read(self) -> Heard:
        """What was said. Raises StoreUnavailable when the connection is gone."""
        due: list[int] = []
        changed: set[str] = set()
        try:
            for _ in range(MOST_MESSAGES):
                if not self._connection.can_read():
                    return Heard(due, changed, True)
                kind, _, *payload = self._connection.read_response()
                if kind != b"message":
                    continue
                if payload[0].startswith(CHANGED):
                    changed.add(payload[0].removeprefix(CHANGED).decode())
                else:
                    due.append(int(payload[0]))
        except (redis_errors.RedisError, OSError, ValueError) as error:
            self.close()
            raise StoreUnavailable("down") from error
        return Heard(due, changed, False)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None

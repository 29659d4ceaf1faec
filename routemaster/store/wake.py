"""Hearing that something came due: the bus's one pub/sub channel."""

from __future__ import annotations

from typing import Any

from redis import exceptions as redis_errors

from routemaster.errors import StoreUnavailable
from routemaster.store.keys import Keys
from routemaster.store.link import Link

# Messages read in one turn: a storm of them must not keep a dispatcher from its work.
MOST_MESSAGES = 1000


class WakeUps:
    """A message may be missed (a lost connection): listeners look by themselves once a second."""

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

    def read(self) -> list[int]:
        """When things become due, ms. Raises StoreUnavailable when the connection is gone."""
        due: list[int] = []
        try:
            while len(due) < MOST_MESSAGES and self._connection.can_read():
                kind, _, *payload = self._connection.read_response()
                if kind == b"message":
                    due.append(int(payload[0]))
        except (redis_errors.RedisError, OSError, ValueError) as error:
            self.close()
            raise StoreUnavailable("down") from error
        return due

    def close(self) -> None:
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None

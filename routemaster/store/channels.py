"""Listening on any number of Redis' channels, over a connection of one's own. One thread's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from redis import exceptions as redis_errors

from routemaster.errors import StoreUnavailable
from routemaster.store.link import Link
from routemaster.store.wake import MOST_MESSAGES

TROUBLE = (redis_errors.RedisError, OSError, ValueError)


@dataclass(frozen=True, slots=True)
class Heard:
    """A message; or, when `is_begun`, that from now on none is missed."""

    channel: str
    payload: bytes
    is_begun: bool = False


class Channels:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._connection: Any = None
        self.wanted: set[str] = set()

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    def listen_to(self, wanted: Collection[str]) -> int:
        """Connects when needed; returns the file descriptor to wait on. Raises StoreUnavailable."""
        try:
            if self._connection is None:
                connection = self._link.own_connection()
                connection.connect()
                self._connection, self.wanted = connection, set()
            for verb, names in (
                ("SUBSCRIBE", set(wanted) - self.wanted),
                ("UNSUBSCRIBE", self.wanted - set(wanted)),
            ):
                if names:
                    self._connection.send_command(verb, *sorted(names))
            descriptor: int = self._connection._sock.fileno()
        except TROUBLE as error:
            self.close()
            raise StoreUnavailable("down") from error
        self.wanted = set(wanted)
        return descriptor

    def read(self) -> list[Heard]:
        """What has come, as far as one turn goes. Raises StoreUnavailable."""
        heard: list[Heard] = []
        try:
            while len(heard) < MOST_MESSAGES and self._connection.can_read():
                kind, channel, payload = self._connection.read_response()
                if kind in (b"message", b"subscribe"):
                    is_begun = kind == b"subscribe"
                    heard.append(Heard(channel.decode(), b"" if is_begun else payload, is_begun))
        except TROUBLE as error:
            self.close()
            raise StoreUnavailable("down") from error
        return heard

    def close(self) -> None:
        if self._connection is not None:
            self._connection.disconnect()
            self._connection = None
        self.wanted = set()

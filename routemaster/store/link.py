"""The one way to Redis: raw commands and scripts over pooled connections.

Written over redis-py's Connection and not its client, for two reasons. The client re-sends
*every* command up to ten times when a reply is lost, and a publish sent twice is an event stored
twice. And the client's bookkeeping costs more than the round trip (INTERNALS.md, Decisions).
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import hiredis
from redis import ConnectionPool
from redis import exceptions as redis_errors
from redis.backoff import NoBackoff
from redis.retry import Retry

from routemaster.errors import StoreUnavailable
from routemaster.store.scripts import Script

Arg = bytes | str | int
Reply = Any  # what Redis says: bytes, int, None or lists of them
Connection = Any  # redis-py's connections carry no type hints

# How the time limit is shared out, so that connecting and reading together stay within it.
CONNECT_SHARE, READ_SHARE = 0.35, 0.65

# redis-py knows some of Redis' errors by class and leaves the others their first word.
REASON_BY_CLASS: dict[type[Exception], str] = {
    redis_errors.OutOfMemoryError: "full",
    redis_errors.ReadOnlyError: "read-only",
    redis_errors.MasterDownError: "read-only",
    redis_errors.BusyLoadingError: "loading",
    redis_errors.AuthenticationError: "refuses our credentials",
    redis_errors.NoPermissionError: "refuses our credentials",
    redis_errors.TimeoutError: "not answering",
    TimeoutError: "not answering",
}
REASON_BY_WORD = {
    "BUSY": "busy",
    "MISCONF": "cannot write to disk",
    "NOREPLICAS": "too few replicas",
}


# hiredis' own type hints want a tuple of exactly one.
pack: Callable[[tuple[Arg, ...]], bytes] = hiredis.pack_command  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Call:
    """A script with what it is called with, to be sent when others are."""

    script: Script
    keys: Sequence[str]
    args: Sequence[Arg]

    @property
    def command(self) -> tuple[Arg, ...]:
        return ("EVALSHA", self.script.sha, len(self.keys), *self.keys, *self.args)


class Link:
    def __init__(self, url: str, timeout_s: float) -> None:
        self._pool = ConnectionPool.from_url(
            url,
            protocol=2,
            socket_connect_timeout=timeout_s * CONNECT_SHARE,
            socket_timeout=timeout_s * READ_SHARE,
            retry=Retry(NoBackoff(), 0),
            driver_info=None,
            # It only makes connections for us, and counts each that it ever made: with its usual
            # limit of 100, who listens would be deaf for good after so many attempts.
            max_connections=sys.maxsize,
        )
        self._idle: deque[Connection] = deque()
        self._pid = os.getpid()

    def call(self, *command: Arg) -> Reply:
        return self._exchange([command])[0]

    def many(self, commands: Iterable[Sequence[Arg]], atomic: bool = False) -> list[Reply]:
        """Several commands in one round trip; `atomic` puts them into a transaction."""
        batch = list(commands)
        if not batch:
            return []
        if not atomic:
            return self._exchange(batch)
        return checked(self._exchange([("MULTI",), *batch, ("EXEC",)])[-1])

    def run(self, script: Script, keys: Sequence[str], args: Sequence[Arg]) -> Reply:
        return self.run_call(Call(script, keys, args))

    def run_call(self, call: Call) -> Reply:
        [reply] = self.run_each([call])
        if isinstance(reply, StoreUnavailable):
            raise reply
        return reply

    def run_each(self, calls: Sequence[Call]) -> list[Reply]:
        """Several in one round trip, none of which stops the others: what Redis refused has a
        StoreUnavailable for its reply. A script that Redis has forgotten was not run: safe to send
        again."""
        return self._completed(calls, self._replies([call.command for call in calls]))

    def _completed(self, calls: Sequence[Call], replies: list[Reply]) -> list[Reply]:
        forgotten = [i for i, reply in enumerate(replies) if is_forgotten(reply)]
        if forgotten:
            sources = {calls[i].script.source for i in forgotten}
            self.many([("SCRIPT", "LOAD", source) for source in sources])
            again = self._replies([calls[i].command for i in forgotten])
            for i, reply in zip(forgotten, again, strict=True):
                replies[i] = reply
        return [refusal(reply) if isinstance(reply, Exception) else reply for reply in replies]

    def conversation(self) -> Conversation:
        return Conversation(self._pool.make_connection(), self._completed)

    def own_connection(self) -> Connection:
        """A connection outside the pool, for who listens on it; not connected yet."""
        return self._pool.make_connection()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().disconnect()

    def _exchange(self, commands: Sequence[Sequence[Arg]]) -> list[Reply]:
        return checked(self._replies(commands))

    def _replies(self, commands: Sequence[Sequence[Arg]]) -> list[Reply]:
        connection: Connection | None = None
        try:
            connection = self._connection()
            send(connection, commands)
            return [read_reply(connection) for _ in commands]
        except (redis_errors.RedisError, OSError) as error:
            if connection is not None:
                connection.disconnect()
            raise StoreUnavailable(reason_of(error)) from error
        except BaseException:
            # Interrupted between question and answer: the next user would read our reply.
            if connection is not None:
                connection.disconnect()
            raise
        finally:
            if connection is not None:
                self._idle.append(connection)

    def _connection(self) -> Connection:
        if self._pid != os.getpid():  # a fork must not share its parent's sockets
            self._idle, self._pid = deque(), os.getpid()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._pool.make_connection()
        make_ready(connection)
        return connection


class Conversation:
    """Scripts that are sent now and answered later, for who has other things to do meanwhile.

    One exchange at a time, on a connection of its own; what goes wrong breaks it off, and nobody
    knows what of it Redis has done."""

    def __init__(
        self,
        connection: Connection,
        completed: Callable[[Sequence[Call], list[Reply]], list[Reply]],
    ) -> None:
        self._connection = connection
        self._completed = completed
        self._calls: Sequence[Call] = ()

    @property
    def is_open(self) -> bool:
        return bool(self._calls)

    def begin(self, calls: Sequence[Call]) -> int:
        """Returns the file descriptor to wait on. Raises StoreUnavailable."""
        with self._breaking_off():
            make_ready(self._connection)
            send(self._connection, [call.command for call in calls])
        self._calls = calls
        descriptor: int = self._connection._sock.fileno()
        return descriptor

    def end(self) -> list[Reply]:
        """The replies, as Link.run_each gives them. Raises StoreUnavailable."""
        calls, self._calls = self._calls, ()
        with self._breaking_off():
            replies = [read_reply(self._connection) for _ in calls]
        return self._completed(calls, replies)

    def close(self) -> None:
        self._calls = ()
        self._connection.disconnect()

    @contextmanager
    def _breaking_off(self) -> Iterator[None]:
        try:
            yield
        except (redis_errors.RedisError, OSError) as error:
            self.close()
            raise StoreUnavailable(reason_of(error)) from error
        except BaseException:
            self.close()
            raise


def make_ready(connection: Connection) -> None:
    # Closed since we used it: Redis restarted. Reconnect now, while nothing was sent; afterwards
    # nobody could say whether the command ran.
    if connection.is_connected and was_closed(connection):
        connection.disconnect()
    connection.connect()


def send(connection: Connection, commands: Iterable[Sequence[Arg]]) -> None:
    packed = b"".join([pack(tuple(command)) for command in commands])
    connection.send_packed_command([packed], check_health=False)


def read_reply(connection: Connection) -> Reply:
    # An error reply leaves the connection in order; the replies after it must be read too.
    try:
        return connection.read_response()
    except redis_errors.ResponseError as error:
        return error


def checked(replies: list[Reply]) -> list[Reply]:
    for reply in replies:
        if isinstance(reply, Exception):
            raise refusal(reply)
    return replies


def refusal(error: Exception) -> StoreUnavailable:
    unavailable = StoreUnavailable(reason_of(error))
    unavailable.__cause__ = error
    return unavailable


def is_forgotten(reply: Reply) -> bool:
    return isinstance(reply, redis_errors.NoScriptError)


def was_closed(connection: Connection) -> bool:
    """Nothing was asked, so nothing but the end of the stream can be there to read."""
    try:
        return bool(connection.can_read())
    except (redis_errors.RedisError, OSError):
        return True


def reason_of(error: BaseException) -> str:
    """A word for the operator. Anything Redis says that we do not know is not a client's fault."""
    for kind, reason in REASON_BY_CLASS.items():
        if isinstance(error, kind):
            return reason
    if isinstance(error, redis_errors.ResponseError):
        text = str(error)
        return REASON_BY_WORD.get(text.split(" ", 1)[0], f"error: {text[:200]}")
    return "down"

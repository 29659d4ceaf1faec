"""A job is a name and arguments. Its bytes are its identity: a queue holds each at most once."""

from __future__ import annotations

from dataclasses import dataclass

import msgpack

from routemaster.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Job:
    name: str
    args: tuple[str | int, ...] = ()

    def dump(self) -> bytes:
        packed: bytes = msgpack.packb([self.name, list(self.args)])
        return packed

    @classmethod
    def load(cls, packed: bytes) -> Job:
        job = cls._unpacked(packed)
        # Another spelling of the same job would never be found again by its bytes.
        if job is None or job.dump() != packed:
            raise InvalidInput("job", "must be a MessagePack array of a name and its arguments")
        return job

    @classmethod
    def _unpacked(cls, packed: bytes) -> Job | None:
        try:
            name, args = msgpack.unpackb(packed)
        except (msgpack.UnpackException, ValueError, TypeError, OverflowError, RecursionError):
            return None
        if type(name) is not str or type(args) is not list:
            return None
        # `type` and not isinstance: True is an int, but not an argument.
        return cls(name, tuple(args)) if all(type(arg) in (str, int) for arg in args) else None


def deliver(subscriber: str, lane: str) -> Job:
    return Job("deliver", (subscriber, lane))

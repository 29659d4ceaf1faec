"""Many events in few requests, in order, with one request's worth of them in memory."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator

from routemaster.client.errors import InvalidRequest, TooManyAtOnce
from routemaster.client.http import Transport

LINES = {"Content-Type": "application/x-ndjson"}
REMEMBER = "Routemaster-Remember"
MOST_EVENTS = 1000
MOST_BYTES = 1 << 20


class BulkSender:
    """Requests of at most `most_events` events and `most_bytes` bytes. When the bus says that it
    takes fewer at once, all further requests hold fewer."""

    def __init__(
        self,
        http: Transport,
        most_events: int = MOST_EVENTS,
        most_bytes: int = MOST_BYTES,
        remember_s: int | None = None,
    ) -> None:
        self._http = http
        self.most_events = most_events
        self.most_bytes = most_bytes
        self._remember_s = http.remember_s if remember_s is None else remember_s

    def send_all(
        self,
        topic: str,
        lines: Iterable[str],
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """Returns how many events the bus has."""
        done = 0
        for chunk in self._chunks(lines):
            done += self._send_in_order(topic, chunk, done)
            if progress:
                progress(done)
        return done

    def send(self, topic: str, lines: list[str], key: str, once: bool = False) -> None:
        """One request: all or none, and once however often it comes with the same key."""
        headers = {**LINES, **keyed(key, self._remember_s)}
        if any('"id":' in line for line in lines):  # also in some data, which does no harm
            del headers[REMEMBER]  # it would be for these ids too
        body = "\n".join(lines).encode()
        self._http.call("POST", f"/topics/{topic}", body, headers, once=once)

    def learn(self, refusal: TooManyAtOnce, lines: list[str]) -> list[list[str]]:
        """The same lines in smaller portions, and the limit for those to come."""
        if len(lines) == 1:
            raise refusal
        if refusal.most_bytes:
            self.most_bytes = min(self.most_bytes, refusal.most_bytes)
        most = refusal.most_events or len(lines) // 2
        self.most_events = max(1, min(self.most_events, most, len(lines) - 1))
        return [lines[at : at + self.most_events] for at in range(0, len(lines), self.most_events)]

    def _send_in_order(self, topic: str, lines: list[str], done: int) -> int:
        waiting = [lines]
        sent = 0
        while waiting:
            portion = waiting.pop(0)
            try:
                self.send(topic, portion, new_key())
            except TooManyAtOnce as refusal:
                waiting[:0] = self.learn(refusal, portion)
                continue
            except InvalidRequest as problem:
                if problem.position is not None:
                    problem.detail["position"] = problem.position + done + sent
                raise
            sent += len(portion)
        return sent

    def _chunks(self, lines: Iterable[str]) -> Iterator[list[str]]:
        chunk: list[str] = []
        size = 0
        for line in lines:
            # Characters are bytes: what is not ASCII is escaped.
            if chunk and (len(chunk) >= self.most_events or size + len(line) >= self.most_bytes):
                yield chunk
                chunk, size = [], 0
            chunk.append(line)
            size += len(line) + 1
        if chunk:
            yield chunk


def keyed(key: str, remember_s: int) -> dict[str, str]:
    return {"Idempotency-Key": key, REMEMBER: str(remember_s)}


def new_key() -> str:
    return uuid.uuid4().hex

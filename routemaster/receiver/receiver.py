"""From a request to your function, and from what it did to the answer that the bus understands."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from routemaster.receiver.batch import Batch, Busy, Event, Gap, Gone, Handler, Malformed
from routemaster.receiver.memory import Memory, Store
from routemaster.receiver.verify import Missing, Wrong, check_basic, check_signature

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

MAX_BODY_BYTES = 16 << 20
TOLERANCE_S = 300.0

log = logging.getLogger("routemaster.receiver")


@dataclass(frozen=True, slots=True)
class Answer:
    """`text` is for people: the bus keeps its beginning with the attempt."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    text: str = ""


class Receiver:
    """Answers 2xx only when your function has returned: the bus then forgets the batch.

    `uuid` is the subscription's, `secrets` what GET /subscription/secret says; give both, and of
    each a list while one is being replaced. Either `on_event` is called for each event in order,
    or `on_batch` for each batch: an exception is answered 500, Busy 503, Gone 410, and the whole
    batch comes again. A batch that was processed before is answered without a call, as far as
    `store` remembers. `on_gap` is told of events that never came; it is right only when `store` is
    shared by all who receive."""

    def __init__(
        self,
        *,
        uuid: str | Sequence[str] = (),
        secrets: str | Sequence[str] = (),
        on_event: Callable[[Event], object] | None = None,
        on_batch: Handler | None = None,
        on_gap: Callable[[Gap], object] | None = None,
        store: Store | None = None,
        tolerance_s: float = TOLERANCE_S,
        max_body_bytes: int = MAX_BODY_BYTES,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._uuids = (uuid,) if isinstance(uuid, str) else tuple(uuid)
        self._secrets = (secrets,) if isinstance(secrets, str) else tuple(secrets)
        if not self._uuids and not self._secrets or not all(self._uuids + self._secrets):
            raise ValueError("give the subscription's uuid, its signing secret, or both")
        if (on_event is None) == (on_batch is None):
            raise ValueError("give either on_event or on_batch")
        self._handler = on_batch if on_batch is not None else each(on_event)
        self._on_gap = on_gap
        self._store = Memory() if store is None else store
        self._tolerance_s = tolerance_s
        self.max_body_bytes = max_body_bytes
        self._now_s = now_s
        self._under_way: set[str] = set()
        self._lock = threading.Lock()

    def receive(self, headers: Mapping[str, str], body: bytes) -> Answer:
        """`body` as it came, before anything has parsed it."""
        lower = {name.lower(): value for name, value in headers.items()}
        if len(body) > self.max_body_bytes:
            return too_large(self.max_body_bytes)
        try:
            self._authenticate(lower, body)
            batch = Batch.parse(lower, body)
        except Missing as problem:
            return Answer(401, {"WWW-Authenticate": 'Basic realm="routemaster"'}, str(problem))
        except Wrong as problem:
            return Answer(403, {}, str(problem))
        except Malformed as problem:
            return Answer(400, {}, str(problem))
        return self._once(batch)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        answer = self.serve(environ)
        body = answer.text.encode()
        headers = {"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body))}
        if answer.status == 204:
            headers = {}
        phrase = HTTPStatus(answer.status).phrase
        start_response(f"{answer.status} {phrase}", list((headers | answer.headers).items()))
        return [body]

    def serve(self, environ: Mapping[str, Any]) -> Answer:
        if environ["REQUEST_METHOD"] != "POST":
            return Answer(405, {"Allow": "POST"}, "the bus POSTs")
        length = environ.get("CONTENT_LENGTH") or ""
        if not length.isdecimal():
            return Answer(411, {}, "a Content-Length is required")
        if int(length) > self.max_body_bytes:
            return too_large(self.max_body_bytes)
        body = environ["wsgi.input"].read(int(length))
        if len(body) < int(length):
            return Answer(400, {}, "the body broke off")
        return self.receive(headers_of(environ), body)

    def _authenticate(self, headers: Mapping[str, str], body: bytes) -> None:
        if self._uuids:
            check_basic(self._uuids, headers)
        if self._secrets:
            check_signature(self._secrets, headers, body, self._now_s(), self._tolerance_s)

    def _once(self, batch: Batch) -> Answer:
        with self._lock:
            if batch.id in self._under_way:
                # The bus lost patience with the first attempt, which may yet succeed.
                return Answer(503, {"Retry-After": "1"}, "this batch is being processed")
            self._under_way.add(batch.id)
        try:
            return self._processed(batch)
        except Busy as busy:
            return Answer(503, {"Retry-After": str(max(1, busy.retry_after_s))}, str(busy))
        except Gone:
            return Answer(410, {}, "gone")
        except Exception:
            log.exception("a batch failed id=%s attempt=%d", batch.id, batch.attempt)
            return Answer(500, {}, "the subscriber failed")
        finally:
            with self._lock:
                self._under_way.discard(batch.id)

    def _processed(self, batch: Batch) -> Answer:
        if batch.id and self._store.has(batch.id):
            return Answer(204)
        self._handler(batch)
        if self._on_gap:
            for gap in gaps(batch, self._store.last_of(batch.lane)):
                self._on_gap(gap)
        if batch.id:
            self._store.remember(batch)
        return Answer(204)


def each(on_event: Callable[[Event], object] | None) -> Handler:
    assert on_event is not None

    def handle(batch: Batch) -> None:
        for event in batch.events:
            on_event(event)

    return handle


def gaps(batch: Batch, last: int | None) -> list[Gap]:
    """What is missing between the lane's last number and this batch. A lane that was idle for a
    day counts from 1 again; one that is seen for the first time may have begun before."""
    found = [Gap(batch.lane, first, last_, True) for first, last_ in batch.dropped]
    if last is None or batch.first_seq <= last + 1:
        return found
    at = last + 1
    for first, end in sorted(batch.dropped):
        if first > at:
            found.append(Gap(batch.lane, at, first - 1, False))
        at = max(at, end + 1)
    if at < batch.first_seq:
        found.append(Gap(batch.lane, at, batch.first_seq - 1, False))
    return found


def headers_of(environ: Mapping[str, Any]) -> dict[str, str]:
    return {
        name.removeprefix("HTTP_").replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }


def too_large(most: int) -> Answer:
    return Answer(413, {}, f"a batch may have {most} bytes here")

"""Publishing without waiting: events are queued here, and sent in bulk by a thread."""

from __future__ import annotations

import atexit
import json
import logging
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from routemaster.client.bulk import BulkSender, new_key
from routemaster.client.client import Client, checked_topic
from routemaster.client.errors import (
    BusError,
    InvalidRequest,
    NotSent,
    TooManyAtOnce,
    Unavailable,
)
from routemaster.client.event import Event
from routemaster.client.http import pause_s
from routemaster.client.verbs import Verbs

log = logging.getLogger("routemaster.client")

KEPT_LOSSES = 1000
# Its attempts have no end, and memory has.
REMEMBER_S = 6 * 3600

Loss = Callable[[NotSent], object]


@dataclass(slots=True)
class Lane:
    """One topic's events, oldest first, and how many there have been."""

    lines: deque[str] = field(default_factory=deque)
    accepted: int = 0
    settled: int = 0
    first_at_s: float = 0.0


class BackgroundPublisher(Verbs):
    """Events of a topic go out in the order in which they came. When the bus is away they wait,
    up to `max_queued` of them; then publishing waits, `block` seconds at most, and raises
    Unavailable. What the bus refuses, and what is left at the end, is logged and told to `on_loss`;
    without that, the next flush() or close() raises it. At exit, up to `exit_timeout` seconds are
    spent on sending what is left. After a fork the child begins empty: its parent sends the rest.
    """

    def __init__(
        self,
        client: Client,
        *,
        max_queued: int = 100_000,
        linger: float = 0.05,
        block: float = 30.0,
        exit_timeout: float = 10.0,
        on_loss: Loss | None = None,
    ) -> None:
        self._client = client
        self._bulk = BulkSender(client.http, remember_s=REMEMBER_S)
        self._max_queued = max_queued
        self._linger_s = linger
        self._block_s = block
        self._exit_timeout_s = exit_timeout
        self._on_loss = on_loss
        self._begin()
        _all.add(self)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._lanes: dict[str, Lane] = {}
        self._turns: deque[str] = deque()  # topics with something to send
        self._queued = 0  # with what is being sent
        self._idle = False
        self._hurry = False
        self._end_s: float | None = None
        self._thread: threading.Thread | None = None
        self._sending: tuple[str, list[str]] | None = None
        self._is_abandoned = False
        self._lost: list[tuple[str, dict[str, Any]]] = []
        self._lost_count = 0
        self._untold: deque[NotSent] = deque()
        self._reason: BusError | None = None

    def __enter__(self) -> BackgroundPublisher:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._end(self._exit_timeout_s)  # the error under way is the one to see

    def publish(self, topic: str, event: Event) -> None:
        """Without a time the event gets this moment's: it may be sent much later."""
        if event.t is None:
            event = event._replace(t=now_ms())
        line = event.encoded(self._client.max_data_bytes)
        with self._lock:  # the condition's, entered without its detour
            if self._queued >= self._max_queued:
                self._wait_for_room()
            if self._end_s is not None:
                raise Unavailable("this publisher is closed")
            lane = self._lanes.get(topic)
            if lane is None:
                lane = self._lanes[checked_topic(topic)] = Lane()
            if not lane.lines:
                lane.first_at_s = time.monotonic()
                self._turns.append(topic)
            lane.lines.append(line)
            lane.accepted += 1
            self._queued += 1
            if self._thread is None:
                self._start()
            elif self._idle or len(lane.lines) == self._bulk.most_events:
                self._changed.notify_all()

    def flush(self, timeout: float | None = None) -> None:
        """Returns when all that was published before is with the bus."""
        with self._changed:
            wanted = {topic: lane.accepted for topic, lane in self._lanes.items()}
            self._hurry = True
            self._changed.notify_all()
            is_done = self._changed.wait_for(lambda: self._has_settled(wanted), timeout)
            self._hurry = False
            self._raise_losses()
            if not is_done:
                raise Unavailable(f"{self._queued} events still wait: {self._reason}")

    def close(self, timeout: float | None = None) -> None:
        """Sends what is left, or raises NotSent."""
        self._end(self._exit_timeout_s if timeout is None else timeout)
        with self._changed:
            self._raise_losses()

    # The caller's side

    def _wait_for_room(self) -> None:
        def is_free() -> bool:
            return self._queued < self._max_queued or self._end_s is not None

        if not self._changed.wait_for(is_free, self._block_s):
            raise Unavailable(
                f"{self._queued} events wait already: {self._reason or 'the bus is slow'}"
            )

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="routemaster", daemon=True)
        self._thread.start()
        # Its children end without atexit, by hooks of its own.
        multiprocessing = sys.modules.get("multiprocessing")
        if multiprocessing and multiprocessing.parent_process() is not None:
            from multiprocessing.util import Finalize

            Finalize(self, self._at_exit, exitpriority=10)

    def _end(self, timeout_s: float) -> None:
        with self._changed:
            if self._end_s is None:
                self._end_s = time.monotonic() + timeout_s
            self._changed.notify_all()
            thread = self._thread
        if thread:
            thread.join(timeout_s + 0.5)
        with self._changed:
            self._abandon()
        self._tell()

    def _abandon(self) -> None:
        """What was not sent in time is lost, and said to be."""
        if self._is_abandoned:
            return
        if self._sending:
            self._lose(*self._sending)
        for topic, lane in self._lanes.items():
            if lane.lines:
                self._lose(topic, list(lane.lines))
                lane.lines.clear()
        self._turns.clear()
        self._is_abandoned = True  # should the thread still come back, it has nothing to say

    def _has_settled(self, wanted: Mapping[str, int]) -> bool:
        return all(self._lanes[topic].settled >= count for topic, count in wanted.items())

    def _raise_losses(self) -> None:
        lost, count = self._lost, self._lost_count
        self._lost, self._lost_count = [], 0
        if count:
            raise NotSent(count, lost, self._reason)

    def _at_exit(self) -> None:
        self._end(self._exit_timeout_s)

    # The thread's side

    def _run(self) -> None:
        while True:
            with self._changed:
                taken = self._take()
                self._sending = taken
            if taken is None or not self._send(*taken):
                return

    def _take(self) -> tuple[str, list[str]] | None:
        """The next topic's oldest events; None at the end."""
        while True:
            if self._turns:
                lane = self._lanes[self._turns[0]]
                wait_s = lane.first_at_s + self._linger_s - time.monotonic()
                is_full = len(lane.lines) >= self._bulk.most_events
                if is_full or wait_s <= 0 or self._hurry or self._end_s is not None:
                    return self._chunk(self._turns.popleft(), lane)
                self._changed.wait(wait_s)
            elif self._end_s is not None:
                return None
            else:
                self._idle = True
                self._changed.wait()
                self._idle = False

    def _chunk(self, topic: str, lane: Lane) -> tuple[str, list[str]]:
        chunk: list[str] = []
        size = 0
        while lane.lines and len(chunk) < self._bulk.most_events:
            size += len(lane.lines[0]) + 1
            if chunk and size > self._bulk.most_bytes:
                break
            chunk.append(lane.lines.popleft())
        if lane.lines:
            self._turns.append(topic)
        return topic, chunk

    def _send(self, topic: str, lines: list[str]) -> bool:
        """True when the bus has said yes or no, False when the end came before."""
        waiting = [lines]
        key, failures = new_key(), 0
        while waiting:
            with self._changed:
                self._sending = topic, [line for portion in waiting for line in portion]
            portion = waiting[0]
            try:
                self._bulk.send(topic, portion, key, once=True)
                failures = 0
                self._settle(topic, len(portion))
            except Unavailable as problem:
                self._note(problem)
                failures += 1
                if self._waits(max(problem.retry_after_s, pause_s(failures))):
                    continue  # the same lines by the same key
                return False
            except TooManyAtOnce as refusal:
                waiting[:1] = self._smaller(topic, refusal, portion)
                key = new_key()
                continue
            except InvalidRequest as problem:
                waiting[:1] = self._without_the_bad(topic, problem, portion)
                key = new_key()
                continue
            except Exception as error:  # a bug, too, must not end the thread with events in it
                self._note(error if isinstance(error, BusError) else BusError(repr(error)))
                self._refuse(topic, portion)
            del waiting[0]
            key = new_key()
        with self._changed:
            self._sending = None
        return True

    def _waits(self, seconds: float) -> bool:
        """Whether there is time for another attempt. Being closed cuts a long wait short."""
        with self._changed:
            if self._end_s is None:
                self._changed.wait_for(lambda: self._end_s is not None, seconds)
            elif time.monotonic() + seconds < self._end_s:
                self._changed.wait_for(lambda: False, seconds)
            else:
                return False
            return True

    def _smaller(self, topic: str, refusal: TooManyAtOnce, portion: list[str]) -> list[list[str]]:
        try:
            return self._bulk.learn(refusal, portion)
        except TooManyAtOnce:
            self._note(refusal)
            self._refuse(topic, portion)
            return []

    def _without_the_bad(
        self, topic: str, problem: InvalidRequest, portion: list[str]
    ) -> list[list[str]]:
        self._note(problem)
        at = problem.position
        if at is None or not 0 <= at < len(portion):
            self._refuse(topic, portion)
            return []
        self._refuse(topic, [portion[at]])
        rest = portion[:at] + portion[at + 1 :]
        return [rest] if rest else []

    def _note(self, problem: BusError) -> None:
        self._reason = problem

    def _settle(self, topic: str, count: int) -> None:
        with self._changed:
            if self._is_abandoned:
                return
            self._lanes[topic].settled += count
            self._queued -= count
            self._changed.notify_all()

    def _refuse(self, topic: str, lines: list[str]) -> None:
        with self._changed:
            if not self._is_abandoned:
                self._lose(topic, lines)
        self._tell()

    def _lose(self, topic: str, lines: list[str]) -> None:
        """With the lock held; who releases it calls _tell."""
        self._lanes[topic].settled += len(lines)
        self._queued -= len(lines)
        events = [(topic, json.loads(line)) for line in lines]
        self._untold.append(NotSent(len(events), events, self._reason))
        if self._on_loss is None:
            self._lost_count += len(events)
            self._lost += events[: max(0, KEPT_LOSSES - len(self._lost))]
        self._changed.notify_all()

    def _tell(self) -> None:
        """Without the lock: on_loss may take its time, and publish."""
        while True:
            try:
                loss = self._untold.popleft()
            except IndexError:  # not asked for before: two threads may be here
                return
            topic = loss.events[0][0]
            log.error("events were not sent count=%d topic=%s: %s", loss.count, topic, loss.reason)
            try:
                if self._on_loss:
                    self._on_loss(loss)
            except Exception:
                log.exception("on_loss failed")


_all: weakref.WeakSet[BackgroundPublisher] = weakref.WeakSet()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _after_fork() -> None:
    for publisher in list(_all):
        publisher._begin()


def _at_exit() -> None:
    for publisher in list(_all):
        publisher._at_exit()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)

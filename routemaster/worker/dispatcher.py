"""Deliveries: takes as many jobs as there are free slots, and sleeps until the next is due.

One thread. It waits for libcurl, for a message that something came due earlier, or for the next
deadline; once a second it looks anyway, because a message can be missed.

While deliveries are quick it takes ahead: a slot that becomes free is filled from memory.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from dataclasses import dataclass
from itertools import takewhile

from routemaster.bus import Bus
from routemaster.delivery.courier import Courier
from routemaster.delivery.message import compose
from routemaster.delivery.outcome import Outcome, Response, Verdict, judge
from routemaster.domain.attempt import Attempt
from routemaster.domain.backoff import delay_ms
from routemaster.domain.batch import Batch
from routemaster.domain.health import DAMAGE, REWARD
from routemaster.domain.receiver import Receiver
from routemaster.errors import StoreUnavailable
from routemaster.store.events import uid
from routemaster.store.jobs import Lease, Taken, taken
from routemaster.store.link import Call, Reply
from routemaster.store.wake import WakeUps

LOOK_MS = 1000
# A delivery that takes longer than this no longer counts for a slot: a subscriber that hangs costs
# a socket, and must not keep the others waiting. How many may hang is bounded all the same.
SLOW_MS = 250
SLOW_PER_SLOT = 20
STORE_DOWN_MS = 200
# While deliveries usually take no longer than this, as many jobs as there are slots are taken
# ahead. What then waits for a slot for longer than that goes back, for other workers.
QUICK_MS = 20
AHEAD_MS = 50

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Held:
    lease: Lease
    batch: Batch
    receiver: Receiver
    sent_bytes: int
    started_ms: int
    renew_at_ms: int


@dataclass(frozen=True, slots=True)
class Ahead:
    lease: Lease
    taken_ms: int


class Dispatcher:
    def __init__(
        self, bus: Bus, courier: Courier, wake_ups: WakeUps, worker: str, dice: random.Random
    ) -> None:
        self._bus = bus
        self._courier = courier
        self._wake_ups = wake_ups
        self._listening: int | None = None
        self._worker = worker
        self._dice = dice
        self._slots = bus.settings.worker_threads
        self._lease_ms = round(bus.settings.lease_s * 1000)
        self._held: dict[str, Held] = {}  # by fence
        self._ahead: deque[Ahead] = deque()  # taken, and waiting for a slot
        self._usual_ms: float = SLOW_MS  # how long deliveries took lately
        self._changed: set[str] = set()  # subscriptions, since the take under way was sent
        self._owed: list[Call] = []  # acks and nacks, in order
        # One exchange with Redis at a time; meanwhile deliveries go on.
        self._talk = bus.link.conversation()
        self._said: list[Call] = []  # what of the owed it carries
        self._answer_fd: int | None = None
        self._answer_by_ms = 0
        self._taking = True
        self._asked = False  # whether it carries a take, too
        self._repeat: tuple[str, int] | None = None  # a take whose reply was lost
        self._look_at_ms = 0
        # While Redis is away or refuses. Who is refused at once must not ask again at once.
        self._quiet_until_ms = 0
        self._redis_ahead_ms = 0  # Redis' clock minus our monotonic one

    @property
    def in_flight(self) -> int:
        return len(self._held)

    def step(self, taking: bool = True) -> None:
        """One turn. Trouble with Redis is waited out: nothing that is owed to it is forgotten."""
        self._taking = taking
        if not taking:
            self._return_ahead()
        try:
            self._tell()
            if self._now_ms() >= self._quiet_until_ms:
                self._renew()
                self._listen()  # last: what it does not hear, it still sees when it looks
        except StoreUnavailable as error:
            self._wait_for_store(error)
        ended, readable = self._courier.wait(self._pause_ms() / 1000)
        if self._listening in readable:
            self._hear()  # first: the answer may hold batches of who has left meanwhile
        if self._answer_fd in readable:
            self._hear_answer()
        for fence, response in ended:
            self._finish(self._held.pop(str(fence)), response)
        self._refill()

    def give_back(self) -> None:
        """What is still in flight goes back at once, as if it had not been taken."""
        self._taking = False
        self._return_ahead()
        if self._talk.is_open:
            self._hear_answer()
        for lease in [held.lease for held in self._held.values()] + self._unheard():
            self._owe_nack(lease, 0, attempted=False)
        self._held.clear()
        if self._owed:
            self._quiet_until_ms = 0  # there is no later
            self._tell()
            self._answered()

    def close(self) -> None:
        self._talk.close()

    def _unheard(self) -> list[Lease]:
        """What we were given by a take whose reply was lost, and nothing new."""
        if self._repeat is None:
            return []
        (lease_id, _), self._repeat = self._repeat, None
        taken = self._bus.main.take(self._worker, lease_id, self._lease_ms, 0, repeated=True)
        return taken.leases

    def _now_ms(self) -> int:
        return self._bus.clock.mono_ms()

    def _pause_ms(self) -> int:
        now_ms = self._now_ms()
        if self._talk.is_open:
            until_ms = self._answer_by_ms
        elif self._owed:
            until_ms = self._quiet_until_ms
        elif not self._taking:
            until_ms = now_ms + LOOK_MS
        elif self._wanted() > 0:
            until_ms = max(self._look_at_ms, self._quiet_until_ms)
        else:  # the next to be called slow makes room
            until_ms = (self._prompt() or [now_ms])[-1] + SLOW_MS
        if self._ahead:
            until_ms = min(until_ms, self._ahead[0].taken_ms + AHEAD_MS)
        return max(0, min(LOOK_MS, until_ms - now_ms))

    def _prompt(self) -> list[int]:
        """When the deliveries that count for a slot began, newest first."""
        slow_ms = self._now_ms() - SLOW_MS
        newest = (held.started_ms for held in reversed(self._held.values()))
        return list(takewhile(lambda started_ms: started_ms > slow_ms, newest))

    def _free(self) -> int:
        room = self._slots * SLOW_PER_SLOT - len(self._held)
        return min(self._slots - len(self._prompt()), room)

    def _wanted(self) -> int:
        """How many jobs to take: for free slots, and ahead for those that will be free at once."""
        is_quick = self._usual_ms <= QUICK_MS and self._listening is not None
        return self._free() + (self._slots if is_quick else 0) - len(self._ahead)

    def _listen(self) -> None:
        if self._listening is None:
            self._listening = self._wake_ups.connect()
            self._courier.listen(self._listening)
            self._look_at_ms = 0  # what was said before we listened

    def _hear(self) -> bool:
        """Whether we know all that was said until now."""
        try:
            heard = self._wake_ups.read()
        except StoreUnavailable:
            if self._listening is not None:
                self._courier.ignore(self._listening)
            self._listening = None
            return False
        for due_ms in heard.due_ms:
            self._look_at_ms = min(self._look_at_ms, due_ms - self._redis_ahead_ms)
        if heard.changed:
            # The answer that is on its way may be from before the change.
            self._changed |= heard.changed
            self._return_ahead(heard.changed)
        return heard.is_all

    def _tell(self) -> None:
        """What is owed to Redis, and what we want of it, in one round trip whose answer is heard
        in a later turn. Each ack and nack is fenced, so it may be said twice: a lost reply does no
        harm."""
        now_ms = self._now_ms()
        if self._talk.is_open:
            if now_ms >= self._answer_by_ms:
                self._break_off()
                raise StoreUnavailable("not answering")
            return
        if now_ms < self._quiet_until_ms:
            return
        calls = list(self._owed)
        taking = self._taking and self._wanted() > 0 and now_ms >= self._look_at_ms
        if taking:
            calls.append(self._take_call())
            # What comes due from now on is heard while the answer is on its way, or told by it.
            self._look_at_ms = now_ms + LOOK_MS
            self._changed.clear()
        if not calls:
            return
        self._answer_fd = self._talk.begin(calls)
        self._courier.listen(self._answer_fd)
        self._answer_by_ms = now_ms + round(self._bus.settings.redis_timeout_s * 1000)
        self._said, self._owed = self._owed, []
        self._asked = taking

    def _take_call(self) -> Call:
        repeated = self._repeat is not None
        self._repeat = self._repeat or (uid(), self._wanted())
        lease_id, most = self._repeat
        return self._bus.main.take_call(
            self._worker, lease_id, self._lease_ms, most, repeated=repeated
        )

    def _hear_answer(self) -> None:
        try:
            self._answered()
        except StoreUnavailable as error:
            self._wait_for_store(error)

    def _answered(self) -> None:
        """Waits for the answer, if it is not there yet."""
        self._courier.ignore(self._answer_fd or 0)
        self._answer_fd = None
        try:
            replies = self._talk.end()
        except StoreUnavailable:
            self._owe_again()
            raise
        self._keep_owing(replies[: len(self._said)])
        if self._asked:
            if isinstance(replies[-1], StoreUnavailable):
                raise replies[-1]
            # Had the reply been lost, the same call would give the same jobs again.
            self._repeat = None
            self._begin(taken(replies[-1]))

    def _break_off(self) -> None:
        self._courier.ignore(self._answer_fd or 0)
        self._answer_fd = None
        self._talk.close()
        self._owe_again()

    def _owe_again(self) -> None:
        self._said, self._owed = [], self._said + self._owed

    def _wait_for_store(self, error: StoreUnavailable) -> None:
        log.warning("store unavailable reason=%s", error.reason)
        self._quiet_until_ms = self._look_at_ms = self._now_ms() + STORE_DOWN_MS

    def _keep_owing(self, replies: list[Reply]) -> None:
        """Forgets what Redis has done. What it could not do now is said again."""
        said, self._said = self._said, []
        refused = []
        for call, reply in zip(said, replies, strict=True):
            if not isinstance(reply, StoreUnavailable):
                continue
            if reply.reason.startswith("error:"):
                # Redis is there and refuses just this (a key of a wrong type): it is not said for
                # ever. Its lease runs out, and then the lane is looked at.
                log.error("refused reason=%s", reply.reason)
            else:
                refused.append(call)
        if refused:
            self._quiet_until_ms = self._now_ms() + STORE_DOWN_MS
        self._owed = refused + self._owed

    def _begin(self, found: Taken) -> None:
        now_ms = self._now_ms()
        self._redis_ahead_ms = found.now_ms - now_ms
        due_ms = found.next_due_ms
        if due_ms is not None:
            self._look_at_ms = min(self._look_at_ms, due_ms - self._redis_ahead_ms)
        for lease in found.leases:
            if not self._taking or is_of(lease, self._changed):  # asked for before we heard of it
                self._owe_nack(lease, 0, attempted=False)
            elif self._free() > 0:
                self._send(lease)
            else:
                self._ahead.append(Ahead(lease, now_ms))

    def _refill(self) -> None:
        """Free slots get what was taken ahead. Only who hears that a subscriber left may begin what
        was taken earlier: nothing starts after an unsubscribe was answered."""
        if not self._ahead:
            return
        if self._listening is None or not self._hear():
            self._return_ahead()
        while self._ahead:
            if self._ahead[0].taken_ms + AHEAD_MS <= self._now_ms():
                self._usual_ms = SLOW_MS
                self._return_ahead()
            elif self._free() > 0:
                self._send(self._ahead.popleft().lease)
            else:
                return

    def _return_ahead(self, subscribers: set[str] | None = None) -> None:
        """What was taken ahead, of these subscribers or all, as if it had not been taken."""
        kept = []
        for one in self._ahead:
            if subscribers is None or is_of(one.lease, subscribers):
                self._owe_nack(one.lease, 0, attempted=False)
            else:
                kept.append(one)
        self._ahead = deque(kept)

    def _send(self, lease: Lease) -> None:
        if lease.batch is None or lease.receiver is None:
            log.error("batch vanished batch=%s", lease.bid)
            self._owed.append(self._bus.main.ack_call(lease.job, lease.fence, lease.bid))
            return
        now_ms = self._now_ms()
        held = Held(lease, lease.batch, lease.receiver, 0, now_ms, now_ms + self._lease_ms // 3)
        try:
            message = compose(
                lease.batch, lease.receiver, now_ms + self._redis_ahead_ms, lease.dropped
            )
            held.sent_bytes = len(message.body)
            self._courier.send(lease.fence, message)
        except Exception:  # whatever a stored callback or secret may be: the others must go on
            log.exception("cannot be sent batch=%s", lease.bid)
            self._finish(held, Response(error="unsendable"))
        else:
            self._held[lease.fence] = held

    def _renew(self) -> None:
        now_ms = self._now_ms()
        for held in self._held.values():
            if now_ms >= held.renew_at_ms:
                if not self._bus.main.renew(held.lease.job, held.lease.fence, self._lease_ms):
                    log.warning("lease lost batch=%s", held.lease.bid)
                held.renew_at_ms = now_ms + self._lease_ms // 3

    def _finish(self, held: Held, response: Response) -> None:
        lease = held.lease
        took_ms = self._now_ms() - held.started_ms
        self._usual_ms += (min(took_ms, SLOW_MS) - self._usual_ms) / 8
        outcome = judge(response, self._bus.clock.now_ms())
        wait_ms = self._wait_ms(held, outcome)
        attempt = self._attempt(held, response, outcome)
        if outcome.verdict is Verdict.DELIVERED:
            self._owed.append(
                self._bus.main.ack_call(
                    lease.job, lease.fence, lease.bid, health=REWARD, attempt=attempt
                )
            )
        elif outcome.verdict is Verdict.THROTTLED:
            self._owe_nack(lease, wait_ms, attempted=False, attempt=attempt)
        else:
            self._owe_nack(lease, wait_ms, attempted=True, attempt=attempt)
        self._look_at_ms = min(self._look_at_ms, self._now_ms())  # a slot is free
        report(held, response, outcome, wait_ms, took_ms)

    def _attempt(self, held: Held, response: Response, outcome: Outcome) -> Attempt:
        batch, ahead_ms = held.batch, self._redis_ahead_ms
        return Attempt(
            lane=batch.lane,
            bid=batch.bid,
            number=batch.attempts + 1,
            events=len(batch.events),
            sent_bytes=held.sent_bytes,
            created_ms=batch.created_ms,
            started_ms=held.started_ms + ahead_ms,
            finished_ms=self._now_ms() + ahead_ms,
            outcome=outcome.verdict.value,
            status=response.status,
            error=outcome.error_class,
            worker=self._worker,
            first_seq=batch.first_seq,
            excerpt=response.excerpt,
        )

    def _wait_ms(self, held: Held, outcome: Outcome) -> int:
        if outcome.verdict is Verdict.FAILED:
            health = max(0, held.receiver.health_points - DAMAGE)
            failures = held.batch.attempts + 1
            return delay_ms(health, failures, self._bus.settings.max_backoff_ms, self._dice)
        return outcome.wait_ms

    def _owe_nack(
        self, lease: Lease, wait_ms: int, *, attempted: bool, attempt: Attempt | None = None
    ) -> None:
        self._owed.append(
            self._bus.main.nack_call(
                lease.job,
                lease.fence,
                wait_ms,
                damage=DAMAGE if attempted else 0,
                attempted=attempted,
                attempt=attempt,
            )
        )


def is_of(lease: Lease, subscribers: set[str]) -> bool:
    return lease.batch is not None and lease.batch.subscriber in subscribers


def report(held: Held, response: Response, outcome: Outcome, wait_ms: int, took_ms: int) -> None:
    batch = held.batch
    where = (
        batch.subscriber,
        batch.lane,
        batch.bid,
        len(batch.events),
        batch.attempts + 1,
        took_ms,
    )
    if outcome.verdict is Verdict.DELIVERED:
        log.info("delivered subscriber=%s lane=%r batch=%s events=%s attempt=%s ms=%s", *where)
    else:
        log.warning(
            "%s subscriber=%s lane=%r batch=%s events=%s attempt=%s ms=%s status=%s error=%s "
            "wait_ms=%s",
            outcome.verdict.value, *where, response.status, outcome.error_class, wait_ms,
        )  # fmt: skip

"""A subscriber lives through the days: each of its deliveries, one after the other."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from routemaster.demo.cast import Subscriber
from routemaster.demo.incidents import HOUR_MS, MINUTE_MS, Incident
from routemaster.demo.lane import Batch, Lane
from routemaster.demo.traffic import Bursts, rhythm
from routemaster.domain.backoff import delay_ms

DELIVERED, FAILED, THROTTLED, GONE = "delivered", "failed", "throttled", "gone"
MAX_BACKOFF_MS, TIMEOUT_MS, DAMAGE, FULL_HEALTH = 60_000, 20_000, 2, 100
WORKERS = ("worker-1", "worker-2", "worker-3")
# Dropping goes on below the mark at which it began, or it would begin again at once.
DROPPED_TO = 0.97
WEEK_H = 168
DRAWS = 1 << 14

Room = Callable[[int], float]
# lane, batch, attempt, events, bytes, first_seq, created, started, finished, outcome, status,
# error, worker
Row = tuple[str, str, int, int, int, int, int, int, int, str, int, str, str]
# lane, batch, events, first_seq, last_seq, created, dropped
Drop = tuple[str, str, int, int, int, int, int]


@dataclass(slots=True)
class Life:
    subscriber: Subscriber
    lanes: list[Lane]
    attempts: list[Row] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    disabled_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    outcome: str
    took_ms: int
    status: int = 200
    error: str = ""
    wait_ms: int = 0


def live(
    subscriber: Subscriber, traffic: Sequence[Bursts], incidents: Sequence[Incident],
    end_ms: int, seed: int, room: Room | None = None,
) -> Life:  # fmt: skip
    """`room` says how many events it may have waiting; what is above is dropped, oldest first."""
    lanes = [
        Lane(name, f"{subscriber.number:04x}{n:x}", bursts, subscriber.max_events,
             subscriber.timeout_ms)
        for n, (name, bursts) in enumerate(zip(subscriber.lanes, traffic, strict=True))
    ]  # fmt: skip
    mine = [one for one in incidents if one.subscriber == subscriber.name]
    return _Player(Life(subscriber, lanes), mine, end_ms, seed, room).play()


class _Player:
    def __init__(
        self, life: Life, incidents: Sequence[Incident], end_ms: int, seed: int, room: Room | None
    ) -> None:
        self._life = life
        self._pauses = [one for one in incidents if one.kind == "paused"]
        self._troubles = [one for one in incidents if one.kind != "paused"]
        self._end_ms = end_ms
        self._room = room
        self._health = FULL_HEALTH
        number = life.subscriber.number
        self._dice = random.Random(f"{seed}/{number}")
        draws = np.random.default_rng([seed, 5, number])
        took_ms = life.subscriber.median_ms * np.exp(
            life.subscriber.spread * draws.standard_normal(DRAWS)
        )
        self._took_ms: list[float] = took_ms.tolist()
        self._draw = 0
        hours = np.arange(WEEK_H, dtype=np.int64) * HOUR_MS
        self._load: list[float] = (0.85 + 0.3 * rhythm(hours, 14.0)).tolist()

    def play(self) -> Life:
        turns: list[tuple[int, int]] = []
        for place, lane in enumerate(self._life.lanes):
            self._again(turns, place, lane.due_ms(), 0)
        while turns and self._life.disabled_ms is None:
            now_ms, place = heapq.heappop(turns)
            paused = next((one for one in self._pauses if one.covers(now_ms)), None)
            if paused:
                heapq.heappush(turns, (paused.to_ms, place))
            else:
                self._turn(turns, place, now_ms)
        return self._life

    def _again(
        self, turns: list[tuple[int, int]], place: int, due_ms: int | None, free_ms: int
    ) -> None:
        if due_ms is not None and max(due_ms, free_ms) < self._end_ms:
            heapq.heappush(turns, (max(due_ms, free_ms), place))

    def _turn(self, turns: list[tuple[int, int]], place: int, now_ms: int) -> None:
        lane = self._life.lanes[place]
        batch = lane.take(now_ms)
        assert batch is not None, "a lane is due when something waits"
        started_ms = now_ms + self._dice.randrange(1, 6)
        answer = self._ask(started_ms)
        finished_ms = started_ms + answer.took_ms
        if finished_ms >= self._end_ms:
            return  # what comes of it is not known any more
        self._note(lane, batch, started_ms, finished_ms, answer)
        if answer.outcome == DELIVERED:
            self._health = min(FULL_HEALTH, self._health + 1)
            lane.remove(finished_ms)
            self._again(turns, place, lane.due_ms(), finished_ms)
            return
        if answer.outcome == GONE:
            self._life.disabled_ms = finished_ms
            return
        wait_ms = answer.wait_ms
        if answer.outcome == FAILED:
            batch.attempts += 1
            self._health = max(0, self._health - DAMAGE)
            wait_ms = delay_ms(self._health, batch.attempts, MAX_BACKOFF_MS, self._dice)
        self._make_room(finished_ms + wait_ms - 1)
        self._again(turns, place, lane.due_ms(), finished_ms + wait_ms)

    def _note(
        self, lane: Lane, batch: Batch, started_ms: int, finished_ms: int, answer: Answer
    ) -> None:
        self._life.attempts.append((
            lane.name, batch.bid, batch.attempts + 1, batch.events, batch.size_bytes,
            batch.first_seq, batch.created_ms, started_ms, finished_ms, answer.outcome,
            answer.status, answer.error, self._dice.choice(WORKERS),
        ))  # fmt: skip

    def _ask(self, now_ms: int) -> Answer:
        self._draw = (self._draw + 1) % DRAWS
        load = self._load[now_ms // HOUR_MS % WEEK_H]
        took_ms = max(1, round(self._took_ms[self._draw] * load))
        for trouble in self._troubles:
            if trouble.covers(now_ms):
                answer = self._troubled(trouble, now_ms, took_ms)
                if answer:
                    return answer
        if self._dice.random() < self._life.subscriber.failing:
            return self._failure(self._dice.choice(("http_500", "reset")), took_ms)
        return Answer(DELIVERED, min(took_ms, TIMEOUT_MS - 1))

    def _troubled(self, trouble: Incident, now_ms: int, took_ms: int) -> Answer | None:
        detail = trouble.detail
        match trouble.kind:
            case "outage" | "dead":
                return self._failure(detail["error"], took_ms)
            case "flapping":
                since_ms = (now_ms - trouble.from_ms) % (detail["every_minutes"] * MINUTE_MS)
                if since_ms < detail["down_minutes"] * MINUTE_MS:
                    return self._failure(detail["error"], took_ms)
            case "throttled":
                if self._dice.random() < detail["share"]:
                    wait_ms = detail["retry_after_s"] * 1000
                    return Answer(THROTTLED, took_ms, 429, "http_429", wait_ms)
            case "gone":
                return Answer(GONE, took_ms, 410, "http_410")
            case "slow":
                return Answer(DELIVERED, min(round(took_ms * detail["times"]), TIMEOUT_MS - 1))
        return None

    def _failure(self, error: str, took_ms: int) -> Answer:
        if error.startswith("http_"):
            return Answer(FAILED, took_ms, int(error.removeprefix("http_")), error)
        took_ms = {
            "timeout": TIMEOUT_MS,
            "refused": self._dice.randrange(1, 4),
            "dns": self._dice.randrange(4, 30),
        }.get(error, took_ms)
        return Answer(FAILED, took_ms, 0, error)

    def _make_room(self, now_ms: int) -> None:
        if self._room is None or now_ms >= self._end_ms:
            return
        lanes = self._life.lanes
        room = self._room(now_ms)
        waiting = sum(lane.waiting(now_ms) for lane in lanes)
        if waiting <= room:
            return
        while waiting > room * DROPPED_TO:
            lane = max(lanes, key=lambda one: one.waiting(now_ms))
            batch = lane.take(now_ms)
            if batch is None:
                return
            last_seq = batch.first_seq + batch.events - 1
            self._life.drops.append((
                lane.name, batch.bid, batch.events, batch.first_seq, last_seq,
                batch.created_ms, now_ms,
            ))  # fmt: skip
            lane.remove(now_ms)
            waiting -= batch.events

"""What must be true of a database after every script, whatever happened before.

`problems` looks at the database alone, `observed` and `expected` bring it and the model into one
shape, so that a mistake which the model shares with the scripts is still found.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgpack

from routemaster.domain.job import Job as PackedJob
from routemaster.domain.lane import lane_id, split_lane_id
from routemaster.store.jobs import ranges
from routemaster.store.keys import Keys
from tests.lua.model import Model

QUEUES = ("main", "aux")
Dump = dict[str, Any]


class View:
    def __init__(self, dump: Dump, keys: Keys) -> None:
        self.dump = dump
        self.keys = keys
        self.subscribers = {name.decode() for name in dump.get(keys.subscribers, ())}
        self.lanes = {
            lane_id(name, lane.decode()): score
            for name in self.subscribers
            for lane, score in dump.get(keys.lanes(name), {}).items()
        }

    def get(self, key: str, default: Any) -> Any:
        return self.dump.get(key, default)

    def batches(self, lane: str) -> list[list[bytes]]:
        bids = self.get(self.keys.lane_batches_prefix + lane, [])
        return [self.dump[self.keys.batch_prefix + bid.decode()] for bid in bids]

    def states(self, queue: str) -> Counter[tuple[bytes, str]]:
        """Every place in which a job stands."""
        k = self.keys
        found = Counter((job, "s") for job in self.get(k.scheduled(queue), {}))
        found.update((job, "i") for job in self.get(k.instant(queue), []))
        found.update((job, "p") for job in self.get(k.pending(queue), {}))
        found.update((job, "q") for job in self.get(k.quarantine(queue), {}))
        if queue == "main":
            for name in self.subscribers:
                found.update((job, "w") for job in self.get(k.waiting(name), []))
        return found


def problems(dump: Dump, keys: Keys) -> list[str]:
    view = View(dump, keys)
    found = [f"nobody's key: {key}" for key in dump.keys() - explained(view)]
    for queue in QUEUES:
        found += job_problems(view, queue)
    for lane in view.lanes:
        found += lane_problems(view, lane)
    return found + count_problems(view)


def explained(view: View) -> set[str]:
    """Every key that something which exists can own."""
    k = view.keys
    known = {
        k.routes, k.changes, k.tokens, k.topics, k.subscribers, k.event_gauges, k.batch_gauges,
        k.counters, k.attempts, k.dropped, k.publishes, k.publishes_cut, k.export,
        k.fences, k.active, k.trash, k.workers,
        k.series, k.series_totals, k.sessions, k.sign_ins,
    }  # fmt: skip
    known |= {k.series_prefix + name.decode() for name in view.get(k.series_totals, ())}
    for queue in QUEUES:
        known |= {
            k.scheduled(queue), k.instant(queue), k.pending(queue), k.leases(queue),
            k.index(queue), k.reclaims(queue), k.quarantine(queue),
        }  # fmt: skip
    for topic in view.get(k.topics, ()):
        known |= {k.topic(topic.decode()), k.followers(topic.decode())}
    for name in view.subscribers:
        known |= {k.subscriber(name), k.followed(name), k.lanes(name), k.drops(name)}
        known |= {k.waiting(name), k.operations(name)}
    unhooked = {k.trash_prefix + name.decode() for name in view.get(k.trash, [])}
    bids = [bid for key in unhooked for bid in view.dump[key]]
    known |= unhooked
    for lane in view.lanes:
        known |= {k.lane_prefix + lane, k.lane_batches_prefix + lane}
        bids += view.get(k.lane_batches_prefix + lane, [])
    known |= {k.batch_prefix + bid.decode() for bid in bids}
    return known | {key for key in view.dump if key.startswith(k.ids_prefix)}


def job_problems(view: View, queue: str) -> list[str]:
    k = view.keys
    states = view.states(queue)
    jobs = Counter(job for job, _ in states.elements())
    found = [f"{job!r} stands in {times} places" for job, times in jobs.items() if times > 1]
    index = view.get(k.index(queue), {})
    if {(job, entry[:1].decode()) for job, entry in index.items()} != set(states):
        found.append(f"{queue}: the index and the states differ")
    if view.get(k.leases(queue), {}).keys() != view.get(k.pending(queue), {}).keys():
        found.append(f"{queue}: leases and pending differ")
    if not view.get(k.reclaims(queue), {}).keys() <= index.keys():
        found.append(f"{queue}: reclaims of no job")
    lanes = {lane for lane in view.lanes if view.batches(lane)} if queue == "main" else set()
    served = {entry[1:].decode() for entry in index.values()} - {""}
    if served != lanes:
        found.append(f"{queue}: lanes {lanes} have work, {served} have jobs")
    for job, entry in index.items():
        if queue == "main" and PackedJob.load(job).args != split_lane_id(entry[1:].decode()):
            found.append(f"{job!r} is filed under {entry!r}")
    return found


def lane_problems(view: View, lane: str) -> list[str]:
    k = view.keys
    subscriber, name = split_lane_id(lane)
    state = view.dump[k.lane_prefix + lane]
    bids, batches = view.get(k.lane_batches_prefix + lane, []), view.batches(lane)
    found = []
    if len(ranges(state.get(b"dropped", b""))) > 2:
        found.append(f"{lane}: more untold ranges than can be: {state[b'dropped']!r}")
    if b"cur" in state and [state[b"cur"]] != bids[-1:]:
        found.append(f"{lane}: the current batch is not the last")
    events = [int(event) for batch in batches for event in batch[5:]]
    if events != sorted(set(events)):
        found.append(f"{lane}: events out of order: {events}")
    if any(len(batch) < 6 for batch in batches):
        found.append(f"{lane}: an empty batch")
    if any((batch[0].decode(), batch[3].decode()) != (subscriber, name) for batch in batches):
        found.append(f"{lane}: another lane's batch")
    dropped = {
        number
        for drop_lane, first, last, *_ in map(msgpack.unpackb, view.get(k.drops(subscriber), []))
        if drop_lane == name
        for number in range(int(first), int(last) + 1)
    }
    there = [int(b[4]) + n for b in batches for n in range(len(b) - 5)]
    end = int(state[b"seq"]) + (len(batches[-1]) - 5 if b"cur" in state else 0)
    wanted = set(range(there[0] if there else end + 1, end + 1))
    # A drop may be of a number that is there again: a lane forgotten as idle counts from 1.
    if there != sorted(set(there)) or not wanted - set(there) <= dropped:
        found.append(f"{lane}: sequence {there} up to {end}, dropped {dropped}")
    return found


def count_problems(view: View) -> list[str]:
    """Gauges and slots of every subscriber, against what is there."""
    k = view.keys
    events: Counter[str] = Counter()
    batches: Counter[str] = Counter()
    for lane in view.lanes:
        owner = split_lane_id(lane)[0]
        batches[owner] += len(view.batches(lane))
        events[owner] += sum(len(batch) - 5 for batch in view.batches(lane))
    entries = [entry.decode() for entry in view.get(k.index("main"), {}).values()]
    active = Counter(split_lane_id(entry[1:])[0] for entry in entries if entry[0] in "ip")
    truths = {k.event_gauges: events, k.batch_gauges: batches, k.active: active}
    return [
        f"{key}: {stored}, in truth {+truth}"
        for key, truth in truths.items()
        if (stored := +Counter({n.decode(): int(v) for n, v in view.get(key, {}).items()}))
        != +truth
    ]


def observed(dump: Dump, keys: Keys) -> dict[str, Any]:
    view = View(dump, keys)
    k = keys
    seen: dict[str, Any] = {"subscribers": view.subscribers}
    for queue in QUEUES:
        seen[queue] = {
            "scheduled": view.get(k.scheduled(queue), {}),
            "instant": view.get(k.instant(queue), []),
            "pending": view.get(k.pending(queue), {}),
            "leases": view.get(k.leases(queue), {}),
            "reclaims": view.get(k.reclaims(queue), {}),
            "quarantined": set(view.get(k.quarantine(queue), {})),
        }
    seen["dropped"] = [dropped(fields) for _, fields in view.get(k.dropped, [])]
    seen["publishes"] = Counter()
    for field, value in view.get(k.publishes, {}).items():
        minute, _, topic_and_owner = field.decode().partition("|")
        topic, _, owner = topic_and_owner.partition("|")
        assert owner in ("", "publisher")
        for what, amount in zip(("events", "bytes", "fanout"), value.split(), strict=True):
            seen["publishes"][int(minute), topic, what] += int(amount)
    for topic in view.get(k.topics, ()):
        seen[f"topic {topic.decode()}"] = int(view.dump[k.topic(topic.decode())][b"counter"])
    for name in view.subscribers:
        fields = view.dump[k.subscriber(name)]
        seen[name] = {
            "topics": {t.decode() for t in view.get(k.followed(name), ())},
            "state": fields[b"state"].decode(),
            "secret": fields[b"secret"].decode(),
            "health": int(fields[b"health_points"]),
            "failures": int(fields.get(b"failures", 0)),
            "sent": int(fields[b"sent"]),
            "waiting": view.get(k.waiting(name), []),
            "drops": [drop(row) for row in view.get(k.drops(name), [])],
        }
    for lane, score in view.lanes.items():
        state = view.dump[k.lane_prefix + lane]
        seen[lane] = {
            "age": score,
            "seq": int(state[b"seq"]),
            "open": b"cur" in state,
            "hold": int(state.get(b"hold", 0)),
            "untold": {
                number
                for first, last in ranges(state.get(b"dropped", b""))
                for number in range(first, last + 1)
            },
            "batches": [(int(b[1]), int(b[2]), int(b[4]), b[5:]) for b in view.batches(lane)],
        }
    return seen


def drop(row: bytes) -> tuple[str, int, int, str, int]:
    lane, first, last, reason, at = msgpack.unpackb(row)
    return lane, int(first), int(last), reason, int(at)


def dropped(fields: dict[bytes, bytes]) -> list[Any]:
    subscriber, lane, _, *numbers, reason = msgpack.unpackb(fields[b"d"])
    return [subscriber, lane, *map(int, numbers), reason]


def expected(model: Model) -> dict[str, Any]:
    want: dict[str, Any] = {"subscribers": set(model.subscribers)}
    for name, queue in model.queues.items():
        pending = queue.in_state("p")
        want[name] = {
            "scheduled": {job.packed: job.due for job in queue.in_state("s")},
            "instant": [job.packed for job in queue.instant],
            "pending": {job.packed: job.until for job in pending},
            "leases": {j.packed: " ".join((j.fence, *j.holder)).encode() for j in pending},
            "reclaims": {
                j.packed: str(j.reclaims).encode() for j in queue.jobs.values() if j.reclaims
            },
            "quarantined": {job.packed for job in queue.in_state("q")},
        }
    want["dropped"] = model.dropped
    want["publishes"] = model.published
    want |= {f"topic {topic}": count for topic, count in model.topics.items()}
    for owner in model.subscribers.values():
        want[owner.name] = {
            "topics": owner.topics,
            "state": owner.state,
            "secret": owner.secret,
            "health": owner.health,
            "failures": owner.failures,
            "sent": owner.sent,
            "waiting": [job.packed for job in owner.waiting],
            "drops": owner.drops,
        }
        for lane in owner.lanes.values():
            unclosed = len(lane.batches[-1].events) if lane.is_open else 0
            want[lane_id(owner.name, lane.name)] = {
                "age": lane.batches[0].created if lane.batches else -lane.idle_since,
                "seq": lane.total - unclosed,
                "open": lane.is_open,
                "hold": lane.hold,
                "untold": lane.untold,
                "batches": [(b.created, b.attempts, b.first, b.events) for b in lane.batches],
            }
    return want

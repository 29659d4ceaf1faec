"""The whole bus for some days, written as the export would have compacted it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa

from routemaster.demo import cast, snapshots
from routemaster.demo.findings import number_incidents
from routemaster.demo.history import History, Series, history, numbers, summed
from routemaster.demo.incidents import DAY_MS, MINUTE_MS, Incident, planned
from routemaster.demo.snapshots import Moments
from routemaster.demo.subscriber import Room, live
from routemaster.demo.traffic import Bursts, Ints, bursts, lanes_of
from routemaster.domain.datasets import (
    ATTEMPTS,
    COUNTERS,
    DROPS,
    GAUGES,
    HEALTH,
    PUBLISHES,
    Dataset,
)
from routemaster.export.arrow import schema_of
from routemaster.export.files import DAY
from routemaster.export.folder import Folder
from routemaster.export.writing import publish, put

INCIDENTS_FILE = "incidents.json"
MIB = 1 << 20
SUBSCRIBERS_PER_TOPIC, LEAST_TOPICS = 8, 8

Progress = Callable[[str, int, int], None]  # what, how much is done, of how much


@dataclass(frozen=True, slots=True)
class Plan:
    days: int
    subscribers: int
    seed: int
    last_day: date

    @property
    def end_ms(self) -> int:
        midnight = datetime(self.last_day.year, self.last_day.month, self.last_day.day, tzinfo=UTC)
        return int(midnight.timestamp() * 1000) + DAY_MS

    @property
    def first_ms(self) -> int:
        return self.end_ms - self.days * DAY_MS


@dataclass(slots=True)
class Played:
    topics: list[cast.Topic]
    subscribers: list[cast.Subscriber]
    published: list[Bursts]
    histories: dict[str, History]  # by subscriber, in order of name
    incidents: list[Incident]
    moments: Moments
    max_bytes: int


def simulate(plan: Plan, folder: Folder, progress: Progress) -> Played:
    """The same plan gives the same files, byte for byte."""
    played = play(plan, progress)
    write(played, folder, plan, progress)
    return played


def play(plan: Plan, progress: Progress) -> Played:
    topics = cast.topics(max(LEAST_TOPICS, plan.subscribers // SUBSCRIBERS_PER_TOPIC), plan.seed)
    subscribers = cast.subscribers(plan.subscribers, len(topics), plan.seed)
    incidents = planned(topics, subscribers, plan.first_ms, plan.end_ms)
    published = [
        bursts(topic, incidents, plan.first_ms, plan.end_ms, [plan.seed, 3, number])
        for number, topic in enumerate(topics)
    ]
    epoch_ms = next((one.from_ms for one in incidents if one.kind == "counter_epoch"), None)
    moments = Moments(plan.first_ms, plan.end_ms, epoch_ms)
    histories: dict[str, History] = {}

    def add(one: cast.Subscriber, room: Room | None = None) -> None:
        traffic = lanes_of(one, published, plan.seed)
        # A millisecond before the end: the last snapshot then counts all there is.
        life = live(one, traffic, incidents, plan.end_ms - 1, plan.seed, room)
        histories[one.name] = history(life, incidents, moments.times, plan.end_ms)
        progress("deliveries", len(histories), len(subscribers))

    # Whom memory is taken from comes last: how much there is for it depends on the others.
    holder = next((one.subscriber for one in incidents if one.kind == "dead"), None)
    for one in subscribers:
        if one.name != holder:
            add(one)
    others = np.sum([one.events_queued for one in histories.values()], axis=0)
    held = [one for one in subscribers if one.name == holder]
    dead_ms = next((one.from_ms for one in incidents if one.kind == "dead"), plan.end_ms)
    max_bytes = memory(others, [traffic_after(one, published, dead_ms) for one in held])
    for one in held:
        add(one, room_beside(others, moments, max_bytes))
    ordered = {name: histories[name] for name in sorted(histories)}
    played = Played(topics, subscribers, published, ordered, incidents, moments, max_bytes)
    number_incidents(played)
    return played


def traffic_after(one: cast.Subscriber, published: Sequence[Bursts], from_ms: int) -> int:
    mine = [published[topic] for topic in one.topics]
    return int(sum(topic.events[topic.at_ms >= from_ms].sum() for topic in mine))


def memory(others: Ints, held: Sequence[int]) -> int:
    """Small enough that it gets short when half of what is held for the dead one has come."""
    events = max(2 * int(others.max()), int(others.max()) + sum(held) // 2)
    high = snapshots.IDLE_BYTES + snapshots.EVENT_BYTES * events
    return -(-high * 10 // 9 // MIB) * MIB


def room_beside(others: Ints, moments: Moments, max_bytes: int) -> Room:
    most = (snapshots.high_bytes(max_bytes) - snapshots.IDLE_BYTES) / snapshots.EVENT_BYTES
    room = (most - np.maximum(others[:-1], others[1:])).tolist()

    def events(now_ms: int) -> float:
        return float(room[(now_ms - moments.first_ms) // snapshots.SNAPSHOT_EVERY_MS])

    return events


def write(played: Played, folder: Folder, plan: Plan, progress: Progress) -> None:
    sums = all_sums(played)
    streams = {
        ATTEMPTS: pa.concat_tables([one.attempts for one in played.histories.values()]),
        DROPS: pa.concat_tables([one.drops for one in played.histories.values()]),
        PUBLISHES: publishes(played),
    }
    for day in range(plan.days):
        from_ms = plan.first_ms + day * DAY_MS
        to_ms = from_ms + DAY_MS
        tables = {
            dataset: of_day(dataset, table, from_ms, to_ms) for dataset, table in streams.items()
        }
        tables[COUNTERS] = snapshots.counters(sums, played.moments, from_ms, to_ms)
        tables[GAUGES] = snapshots.gauges(
            played.histories, played.max_bytes, played.moments, from_ms, to_ms
        )
        tables[HEALTH] = snapshots.health(played.histories, played.moments, from_ms, to_ms)
        name = datetime.fromtimestamp(from_ms / 1000, UTC).date().isoformat()
        for dataset, table in tables.items():
            publish(folder, dataset, name, DAY, f"{from_ms:013d}", f"{to_ms - 1:013d}", [table])
        progress("days written", day + 1, plan.days)
    write_incidents(played, folder, plan)


def of_day(dataset: Dataset, table: pa.Table, from_ms: int, to_ms: int) -> pa.Table:
    """The rows of a day; where the dataset has an id, theirs is the time and the rank within it,
    as in a Redis stream."""
    at_ms = numbers(table, dataset.time)
    table = table.filter(pa.array((at_ms >= from_ms) & (at_ms < to_ms)))
    if "id" not in table.column_names:
        return table
    at_ms = numbers(table, dataset.time)
    order = np.argsort(at_ms, kind="stable")
    in_time = at_ms[order]
    rank = np.arange(len(order)) - np.searchsorted(in_time, in_time, side="left")
    ids = np.empty(len(order), dtype=object)
    ids[order] = [f"{ms}-{n}" for ms, n in zip(in_time.tolist(), rank.tolist(), strict=True)]
    return table.set_column(0, schema_of(dataset).field("id"), pa.array(ids, pa.string()))


def all_sums(played: Played) -> Mapping[Series, Ints]:
    sums = {
        series: values for one in played.histories.values() for series, values in one.sums.items()
    }
    for topic, one in zip(played.topics, played.published, strict=True):
        for name, values in (("events.published", one.events), ("events.bytes", one.data_bytes)):
            sums[(("name", name), ("topic", topic.name))] = summed(
                one.at_ms, values, played.moments.times
            )
    return sums


def publishes(played: Played) -> pa.Table:
    tables = []
    for number, topic in sorted(enumerate(played.topics), key=lambda pair: pair[1].name):
        one = played.published[number]
        minutes, first = np.unique(one.at_ms // MINUTE_MS * MINUTE_MS, return_index=True)
        events = np.add.reduceat(one.events, first) if len(first) else one.events
        sizes = np.add.reduceat(one.data_bytes, first) if len(first) else one.data_bytes
        followers = sum(number in subscriber.topics for subscriber in played.subscribers)
        columns = [
            minutes, [topic.name] * len(minutes), [topic.publisher] * len(minutes), events, sizes,
            events * followers,
        ]  # fmt: skip
        schema = schema_of(PUBLISHES)
        arrays = [pa.array(c, field.type) for c, field in zip(columns, schema, strict=True)]
        tables.append(pa.Table.from_arrays(arrays, schema=schema))
    return pa.concat_tables(tables)


def write_incidents(played: Played, folder: Folder, plan: Plan) -> None:
    said = {
        "made_with": asdict(plan) | {"last_day": plan.last_day.isoformat()},
        "incidents": [in_words(one) for one in played.incidents],
    }
    text = json.dumps(said, indent=1) + "\n"
    put(folder, lambda sink: sink.write(text.encode()), INCIDENTS_FILE)


def in_words(incident: Incident) -> dict[str, object]:
    who = {"subscriber": incident.subscriber} if incident.subscriber else {}
    who |= {"topic": incident.topic} if incident.topic else {}
    said: dict[str, object] = {"kind": incident.kind, **who}
    said |= {"from": iso(incident.from_ms), "to": iso(incident.to_ms)}
    return said | {"detail": incident.detail, "numbers": incident.numbers}


def iso(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

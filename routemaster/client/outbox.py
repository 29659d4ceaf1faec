"""Publish if and only if a transaction commits: events are rows until the bus has them.

    outbox = Outbox(metadata)  # a table beside yours
    with engine.begin() as connection:
        connection.execute(...)
        outbox.add(connection, "orders", Event("create", url))

`rtm outbox drain` (or `Drainer`) sends them, oldest first, and deletes what the bus has taken.
Each carries an id from the beginning, so that what is sent twice, after a crash or by two drainers,
is stored once; and as every drainer sends a topic from its beginning, the order holds with any
number of them.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.orm import Session

from routemaster.client.bulk import BulkSender, new_key
from routemaster.client.client import Client, checked_topic
from routemaster.client.errors import InvalidRequest, TooManyAtOnce
from routemaster.client.event import MAX_DATA_BYTES, Event

TABLE = "routemaster_outbox"
# For how long a topic is one drainer's: longer than a request with all its attempts takes.
CLAIM_MS = 60_000

log = logging.getLogger("routemaster.outbox")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Outbox:
    """`max_data_bytes` is the bus's ROUTEMASTER_MAX_EVENT_DATA."""

    def __init__(
        self, metadata: MetaData, table: str = TABLE, max_data_bytes: int = MAX_DATA_BYTES
    ) -> None:
        self._max_data_bytes = max_data_bytes
        self.table = Table(
            table,
            metadata,
            Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
            Column("topic", String(64), nullable=False),
            Column("event", Text, nullable=False),
            # Of a topic's oldest row: which drainer has the topic, and until when.
            Column("claimed_by", String(32)),
            Column("claimed_until_ms", BigInteger, nullable=False, server_default="0"),
            # Why the bus refused it; such a row is kept, and no longer in the others' way.
            Column("error", Text),
            Index(f"{table}_by_topic", "topic", "position"),
            # Or a new row could get the number of one that a slow drainer is about to delete.
            sqlite_autoincrement=True,
        )

    def add(self, connection: Connection | Session, topic: str, *events: Event) -> None:
        """Within your transaction. Raises InvalidRequest for what the bus would refuse."""
        rows = [self._row(checked_topic(topic), event) for event in events]
        if rows:
            connection.execute(insert(self.table), rows)

    def _row(self, topic: str, event: Event) -> dict[str, str]:
        whole = event._replace(
            t=now_ms() if event.t is None else event.t,
            id=event.id or uuid.uuid4().hex,
        )
        return {"topic": topic, "event": whole.encoded(self._max_data_bytes)}


@dataclass(frozen=True, slots=True)
class Queued:
    position: int
    event: str


@dataclass(frozen=True, slots=True)
class Waiting:
    events: int
    refused: int


class Drainer:
    def __init__(self, engine: Engine, outbox: Outbox, client: Client) -> None:
        self._engine = engine
        self._table = outbox.table
        self._bulk = BulkSender(client.http)
        self._name = uuid.uuid4().hex

    def drain(self) -> int:
        """Sends all that is there; returns how many events. Raises a BusError when the bus does
        not take them: then they stay. Topics that another drainer has are left to it."""
        return sum(self._drain_topic(topic) for topic in self._topics())

    def waiting(self) -> Waiting:
        counted = select(func.count(), func.count(self._table.c.error))
        with self._engine.connect() as connection:
            events, refused = connection.execute(counted).one()
        return Waiting(events - refused, refused)

    def _topics(self) -> list[str]:
        t = self._table.c
        first = func.min(t.position)
        found = select(t.topic).where(t.error.is_(None)).group_by(t.topic).order_by(first)
        with self._engine.connect() as connection:
            return list(connection.scalars(found))

    def _drain_topic(self, topic: str) -> int:
        sent = 0
        while True:
            rows = self._claimed(topic)
            if not rows:
                return sent
            try:
                sent += self._send(topic, rows)
            except BaseException:
                self._release(rows[0].position)
                raise

    def _claimed(self, topic: str) -> Sequence[Queued]:
        """The topic's oldest rows, if the first is free: that makes the topic ours. Short
        transactions only, because SQLite has one writer."""
        t = self._table.c
        oldest = (
            select(t.position, t.event)
            .where(t.topic == topic, t.error.is_(None))
            .order_by(t.position)
            .limit(self._bulk.most_events)
        )
        with self._engine.begin() as connection:
            rows = [Queued(*row) for row in connection.execute(oldest)]
            if not rows:
                return []
            now = now_ms()
            claim = (
                update(self._table)
                .where(t.position == rows[0].position, t.error.is_(None))
                .where((t.claimed_until_ms < now) | (t.claimed_by == self._name))
                .values(claimed_by=self._name, claimed_until_ms=now + CLAIM_MS)
            )
            is_ours = connection.execute(claim).rowcount > 0
        return rows if is_ours else []

    def _send(self, topic: str, rows: Sequence[Queued]) -> int:
        """All of them, in portions as the bus wants them; each is deleted once it is there."""
        waiting = [list(rows)]
        sent = 0
        while waiting:
            portion = waiting.pop(0)
            lines = [row.event for row in portion]
            try:
                self._bulk.send(topic, lines, new_key())
            except TooManyAtOnce as refusal:
                if len(portion) == 1:
                    self._refuse(portion[0], refusal)
                    continue
                sizes = [len(part) for part in self._bulk.learn(refusal, lines)]
                waiting[:0] = [[portion.pop(0) for _ in range(size)] for size in sizes]
                continue
            except InvalidRequest as problem:
                if problem.position is None:
                    raise
                self._refuse(portion.pop(problem.position), problem)
                waiting[:0] = [portion] if portion else []
                continue
            self._delete(portion)
            sent += len(portion)
        return sent

    def _delete(self, rows: Sequence[Queued]) -> None:
        # By their numbers: a row with a smaller one may have been committed meanwhile.
        positions = [row.position for row in rows]
        with self._engine.begin() as connection:
            connection.execute(delete(self._table).where(self._table.c.position.in_(positions)))

    def _refuse(self, row: Queued, problem: InvalidRequest) -> None:
        log.error("the bus refuses an event position=%d: %s", row.position, problem)
        mark = update(self._table).where(self._table.c.position == row.position)
        with self._engine.begin() as connection:
            connection.execute(mark.values(error=str(problem)[:500], claimed_until_ms=0))

    def _release(self, position: int) -> None:
        t = self._table.c
        mine = update(self._table).where(t.position == position, t.claimed_by == self._name)
        try:
            with self._engine.begin() as connection:
                connection.execute(mine.values(claimed_until_ms=0))
        except Exception:
            log.warning("a claim could not be given back, and ends by itself")

"""The parts of a running bus, put together once per process."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

from routemaster.clock import Clock, SystemClock
from routemaster.digest_auth import DigestAuth
from routemaster.domain.event import EventRules
from routemaster.identity import REALM, Authenticator
from routemaster.publish import Publisher
from routemaster.settings import Settings
from routemaster.store.counters import CounterStore
from routemaster.store.directory import Directory
from routemaster.store.events import EventStore
from routemaster.store.exports import ExportStore
from routemaster.store.jobs import JobQueue, Limits
from routemaster.store.keys import Keys
from routemaster.store.lanes import LaneStore
from routemaster.store.link import Link
from routemaster.store.live import LiveStore
from routemaster.store.operations import Operations
from routemaster.store.pulls import PullStore
from routemaster.store.series import SeriesStore
from routemaster.store.sessions import SessionStore
from routemaster.store.subscribers import SubscriberStore
from routemaster.store.tokens import TokenStore
from routemaster.store.topics import TopicStore
from routemaster.store.traffic import TrafficStore
from routemaster.store.workers import WorkerStore

# One in so many of Redis' bytes may be rows of one kind that wait for the export. A row of attempts
# was measured at 120 bytes; long names make it larger.
EXPORT_SHARE, ROW_BYTES = 20, 200


@dataclass(frozen=True, slots=True)
class Bus:
    settings: Settings
    clock: Clock
    link: Link
    keys: Keys
    directory: Directory
    tokens: TokenStore
    topics: TopicStore
    subscribers: SubscriberStore
    lanes: LaneStore
    operations: Operations
    counters: CounterStore
    exports: ExportStore
    workers: WorkerStore
    traffic: TrafficStore
    series: SeriesStore
    sessions: SessionStore
    events: EventStore
    main: JobQueue
    pulls: PullStore
    live: LiveStore
    aux: JobQueue
    authenticator: Authenticator
    digest_auth: DigestAuth | None
    publisher: Publisher


def is_exporting(settings: Settings) -> bool:
    """Without what writes the files there must be no rows that wait for them."""
    return settings.export_url is not None and find_spec("pyarrow") is not None


def export_backlog(settings: Settings) -> int:
    """Rows of each kind that may wait: fewer in a small Redis, because events are worth more than
    what is told of them."""
    if not is_exporting(settings):
        return 0
    share = settings.redis_max_mem_bytes // EXPORT_SHARE // ROW_BYTES
    return max(1, min(settings.export_backlog, share))


def assemble(settings: Settings, clock: Clock | None = None) -> Bus:
    clock = clock or SystemClock()
    link = Link(settings.redis_address, settings.redis_timeout_s)
    keys = Keys(settings.namespace)
    directory = Directory(link, keys)
    topics = TopicStore(link, keys)
    backlog = export_backlog(settings)
    limits = Limits(settings.operations_max, backlog)
    events = EventStore(link, keys, settings.max_lanes, backlog)
    digest_auth = DigestAuth(REALM, settings.root_key, clock) if settings.digest_auth else None
    authenticator = Authenticator(settings.root_key, digest_auth)
    rules = EventRules(settings.max_event_data_bytes, settings.max_bulk_events)
    main = JobQueue(link, keys, "main", limits)
    publisher = Publisher(
        authenticator, directory, topics, events, clock, rules, settings.max_fanout
    )
    return Bus(
        settings=settings,
        clock=clock,
        link=link,
        keys=keys,
        directory=directory,
        tokens=TokenStore(link, keys),
        topics=topics,
        subscribers=SubscriberStore(link, keys),
        lanes=LaneStore(link, keys, limits),
        operations=Operations(link, keys),
        counters=CounterStore(link, keys),
        exports=ExportStore(link, keys),
        workers=WorkerStore(link, keys),
        traffic=TrafficStore(link, keys),
        series=SeriesStore(link, keys),
        sessions=SessionStore(link, keys),
        events=events,
        main=main,
        pulls=PullStore(link, keys, main),
        live=LiveStore(link, keys),
        aux=JobQueue(link, keys, "aux"),
        authenticator=authenticator,
        digest_auth=digest_auth,
        publisher=publisher,
    )

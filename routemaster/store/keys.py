"""Every key name, in the order of INTERNALS.md's data layout.

All keys carry the hash tag of their shard, so that a script's keys are in one slot of a Redis
Cluster. Names that end in a prefix are families: a script gets the prefix and appends the rest.
"""

from __future__ import annotations

SHARD = 0


class Keys:
    def __init__(self, namespace: str, shard: int = SHARD) -> None:
        root = f"{namespace}:{{{shard}}}:"
        self.root = root
        # Directory: small, changed rarely, announced by a version.
        self.routes = root + "routes"
        self.changes = root + "routes:changes"
        self.tokens = root + "api_tokens"
        self.topics = root + "topics"
        self.topic_prefix = root + "topic:"
        self.subscribers = root + "subscribers"
        self.subscriber_prefix = root + "subscriber:"
        self.followers_prefix = root + "subscribers:"
        self.followed_prefix = root + "topics:"
        self.ids_prefix = root + "ids:"
        # Lanes and batches.
        self.lanes_prefix = root + "lanes:"
        self.lane_prefix = root + "lane:"
        self.lane_batches_prefix = root + "batches:lane:"
        self.batch_prefix = root + "batch:"
        self.event_gauges = root + "batches:gauges:event"
        self.batch_gauges = root + "batches:gauges:batch"
        self.drops_prefix = root + "drops:"
        self.operations_prefix = root + "operations:"
        # What the export drains.
        self.attempts = root + "attempts"
        self.dropped = root + "dropped"
        self.publishes = root + "publishes"
        self.publishes_cut = root + "publishes:cut"
        self.export = root + "export"
        self.trash = root + "trash"
        self.trash_prefix = root + "trash:"
        # Jobs.
        self.fences = root + "jobs:fences"
        self.active = root + "jobs:active"
        self.waiting_prefix = root + "jobs:waiting:"
        # Everything else.
        self.workers = root + "workers"
        self.counters = root + "counters"
        self.pulse = root + "pulse"
        # What the dashboard shows, and to whom.
        self.series = root + "series"
        self.series_prefix = root + "series:"
        self.series_totals = root + "series_totals"
        self.sessions = root + "sessions"
        self.sign_ins = root + "sign_ins"
        # Not a key: the channel on which dispatchers hear that something came due.
        self.wake_channel = root + "wake"

    def topic(self, name: str) -> str:
        return self.topic_prefix + name

    def followers(self, topic: str) -> str:
        """The set of subscribers of a topic."""
        return self.followers_prefix + topic

    def followed(self, subscriber: str) -> str:
        """The set of topics of a subscriber."""
        return self.followed_prefix + subscriber

    def subscriber(self, name: str) -> str:
        return self.subscriber_prefix + name

    def ids(self, topic: str) -> str:
        return f"{self.ids_prefix}{topic}:"

    def lanes(self, subscriber: str) -> str:
        return self.lanes_prefix + subscriber

    def drops(self, subscriber: str) -> str:
        return self.drops_prefix + subscriber

    def operations(self, subscriber: str) -> str:
        return self.operations_prefix + subscriber

    def waiting(self, subscriber: str) -> str:
        return self.waiting_prefix + subscriber

    def index(self, queue: str) -> str:
        return f"{self.root}jobs:index:{queue}"

    def scheduled(self, queue: str) -> str:
        return f"{self.root}jobs:scheduled:{queue}"

    def instant(self, queue: str) -> str:
        return f"{self.root}jobs:instant:{queue}"

    def pending(self, queue: str) -> str:
        return f"{self.root}jobs:pending:{queue}"

    def leases(self, queue: str) -> str:
        return f"{self.root}jobs:leases:{queue}"

    def reclaims(self, queue: str) -> str:
        return f"{self.root}jobs:reclaims:{queue}"

    def quarantine(self, queue: str) -> str:
        return f"{self.root}jobs:quarantine:{queue}"

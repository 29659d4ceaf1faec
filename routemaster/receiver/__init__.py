"""Receiving batches from a bus in any WSGI program. Needs the standard library only.

    receiver = Receiver(uuid="secret-for-the-callback", secrets=["whsec_..."], on_event=print)

is a WSGI application; `blueprint(receiver)` is a Flask blueprint and `django_view(receiver)` a
view, and `receiver.receive(headers, body)` serves everything else.
"""

from __future__ import annotations

from routemaster.receiver.batch import Batch, Busy, Event, Gap, Gone, Handler
from routemaster.receiver.dirty import DirtyMap, mark_dirty
from routemaster.receiver.frameworks import blueprint, django_view
from routemaster.receiver.memory import Memory, SqliteMemory, Store
from routemaster.receiver.receiver import Answer, Receiver
from routemaster.receiver.stack import ignore_stale, latest_by_url, siphon

__all__ = [
    "Answer",
    "Batch",
    "Busy",
    "DirtyMap",
    "Event",
    "Gap",
    "Gone",
    "Handler",
    "Memory",
    "Receiver",
    "SqliteMemory",
    "Store",
    "blueprint",
    "django_view",
    "ignore_stale",
    "latest_by_url",
    "mark_dirty",
    "siphon",
]

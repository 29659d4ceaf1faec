from __future__ import annotations

from tests.clients.conftest import bus, client, receiver, root, token, topic

__all__ = ["bus", "client", "receiver", "root", "token", "topic"]

"""Clients' tokens: kept as digests, shown once."""

from __future__ import annotations

from dataclasses import asdict

import msgpack

from routemaster.domain.token import digest
from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Link
from routemaster.store.table import Client


class TokenStore:
    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys
        self._where = [keys.routes, keys.changes, keys.tokens]

    def add(self, token: str, client: Client) -> bool:
        """False when the token exists already."""
        record = msgpack.packb(asdict(client))
        return bool(self._link.run(scripts.load().token_add, self._where, [digest(token), record]))

    def remove(self, token_digest: str) -> bool:
        return bool(self._link.run(scripts.load().token_remove, self._where, [token_digest]))

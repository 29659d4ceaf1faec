"""Clients come and go: made through the API, or declared in the environment."""

from __future__ import annotations

from collections.abc import Sequence

from routemaster.bus import Bus
from routemaster.domain.token import digest, masked
from routemaster.errors import InvalidInput
from routemaster.store.table import Client

API, ENVIRONMENT = "api", "environment"


def add_token(bus: Bus, name: str, token: str) -> None:
    if bus.authenticator.is_root_key(token):
        raise InvalidInput("token", "must not be the root key")
    if not _store(bus, name, token, API):
        raise InvalidInput("token", "is in use already")


def remove_token(bus: Bus, token_or_id: str) -> None:
    """By the token itself, or by the id that listings show. Unknown is as good as removed."""
    presented = digest(token_or_id)
    for known, client in bus.directory.fresh().clients.items():
        if known == presented or client.token_id == token_or_id:
            bus.tokens.remove(known)


def seed(bus: Bus, tokens: Sequence[str]) -> None:
    """Make the declared tokens exist, and only them: one that is no longer declared goes.

    Any number of processes may do this at once."""
    declared = {digest(token): token for token in tokens}
    known = bus.directory.fresh().clients
    for old, client in known.items():
        lacks_digest = bus.digest_auth is not None and not client.digest_ha1
        if client.source == ENVIRONMENT and (old not in declared or lacks_digest):
            bus.tokens.remove(old)
    for token in declared.values():
        _store(bus, token.partition("--")[0], token, ENVIRONMENT)


def _store(bus: Bus, name: str, token: str, source: str) -> bool:
    secrets = bus.digest_auth.secrets_for(name, token) if bus.digest_auth else {}
    client = Client(name, masked(token), source, bus.clock.now_ms(), secrets)
    return bus.tokens.add(token, client)

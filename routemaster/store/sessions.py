"""Who is signed in to the dashboard: on the server, so that signing out and revoking end it."""

from __future__ import annotations

from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.store.link import Link

MINUTE_MS = 60_000
LIFE_MS = 12 * 3600 * 1000
IDLE_MS = 3600 * 1000
MOST_SESSIONS = 1000
# From one bucket of addresses. Those that succeed count too: else who has a token of their own
# could guess another's for as long as they like.
TRIES, TRIES_MS = 20, 5 * MINUTE_MS


class SessionStore:
    """`session` and `bucket` are keyed digests: who reads Redis learns no id and no address."""

    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys

    def open(self, session: str, token: str, now_ms: int | str = "") -> None:
        args = [session, token, now_ms, LIFE_MS, IDLE_MS, MOST_SESSIONS]
        self._link.run(scripts.load().session_open, [self._keys.sessions], args)

    def seen(self, session: str, now_ms: int | str = "") -> str:
        """What it was opened with, '' when it is over."""
        args = [session, now_ms, LIFE_MS, IDLE_MS, MINUTE_MS]
        token: bytes = self._link.run(scripts.load().session_seen, [self._keys.sessions], args)
        return token.decode()

    def close(self, session: str) -> None:
        self._link.call("HDEL", self._keys.sessions, session)

    def try_sign_in(self, bucket: str, now_ms: int | str = "") -> int:
        """Counts a try; returns how many milliseconds to wait before the next, 0 for go on."""
        args = [bucket, now_ms, TRIES_MS, TRIES]
        return int(self._link.run(scripts.load().sign_in_try, [self._keys.sign_ins], args))

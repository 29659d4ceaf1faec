"""One request to the bus, made again until it is answered or its deadline is over.

Only calls that may be made twice come here: each names what it wants in full, or carries an id.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests

from routemaster import __version__
from routemaster.client.errors import KINDS, BusError, NotFound, Unavailable

FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 5.0
MOST_BYTES = 64 << 20
BLOCK_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


class Transport:
    """Safe to share between threads and over a fork: each has connections of its own.

    `timeout` is how long to wait for the bus to connect or to say anything, `deadline` how long a
    call may take with all its attempts; both in seconds."""

    def __init__(
        self, url: str, token: str, timeout: float, deadline: float, verify: bool | str
    ) -> None:
        self.url = checked_url(url)
        self._token = token
        self._timeout_s = timeout
        self._deadline_s = deadline
        # The bus forgets a request's key when it cannot be made again any more.
        self.remember_s = min(86_400, max(600, int(2 * deadline)))
        self._verify = verify
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"Transport({self.url!r})"

    def call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        is_gone_fine: bool = False,
        once: bool = False,
        wait_s: float = 0.0,
    ) -> Answer:
        """`is_gone_fine`: a 404 after an attempt whose answer was lost means that it did work.
        `once`: the caller makes the further attempts. `wait_s`: for how long the bus may be asked
        to have nothing to say."""
        end_s = time.monotonic() + self._deadline_s + wait_s
        attempts, was_lost = 0, False
        while True:
            attempts += 1
            asked_s = 0.0
            try:
                answer = self._attempt(method, path, body, headers, end_s, wait_s)
                if answer.status < 400 and answer.status // 100 != 3:
                    return answer
                problem = explained(answer)
                if answer.status != 429 and answer.status < 500:
                    if was_lost and is_gone_fine and isinstance(problem, NotFound):
                        return Answer(204, {}, b"")
                    raise problem
                asked_s = retry_after_s(answer)
            except (requests.RequestException, OSError) as error:
                was_lost = True
                problem = BusError(f"{self.url} does not answer: {first_line(error)}")
            wait_s = max(asked_s, pause_s(attempts))
            if once or time.monotonic() + wait_s >= end_s:
                raise Unavailable(str(problem), problem.status, attempts, asked_s) from problem
            time.sleep(wait_s)

    def open(
        self, path: str, timeout: tuple[float, float], headers: Mapping[str, str]
    ) -> requests.Response:
        """A response whose body goes on: a live stream. Errors are raised as by `call`."""
        response = self._session().get(
            self.url + path, stream=True, timeout=timeout, headers=headers, allow_redirects=False
        )
        if response.status_code != 200:
            with response:
                body = response.raw.read(BLOCK_BYTES, decode_content=True)
            raise explained(Answer(response.status_code, response.headers, body))
        return response

    def close(self) -> None:
        """This thread's connections."""
        session: requests.Session | None = getattr(self._local, "session", None)
        if session is not None:
            session.close()
            del self._local.session

    def _attempt(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        end_s: float,
        wait_s: float,
    ) -> Answer:
        left_s = max(0.001, end_s - time.monotonic())
        response = self._session().request(
            method,
            self.url + path,
            data=body,
            headers=dict(headers) if headers else None,
            timeout=min(self._timeout_s + wait_s, left_s),
            # A redirect would take the token somewhere else.
            allow_redirects=False,
            stream=True,
        )
        with response:
            content = bytearray()
            for block in response.iter_content(BLOCK_BYTES):
                content += block
                if len(content) > MOST_BYTES or time.monotonic() > end_s:
                    raise requests.RequestException("the answer does not come to its end")
        return Answer(response.status_code, response.headers, bytes(content))

    def _session(self) -> requests.Session:
        # After a fork both would talk over the same socket.
        if getattr(self._local, "pid", None) != os.getpid():
            session = requests.Session()
            session.auth = (self._token, "x")
            session.verify = self._verify
            session.headers["User-Agent"] = f"routemaster-python/{__version__}"
            self._local.session, self._local.pid = session, os.getpid()
        found: requests.Session = self._local.session
        return found


def checked_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"the bus's url must be like https://bus.example.com, not {url!r}")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("the bus's url must hold no user name, query or fragment")
    return url.rstrip("/")


def explained(answer: Answer) -> BusError:
    if answer.status // 100 == 3:
        where = answer.headers.get("Location", "elsewhere")
        return BusError(f"the bus is at {where[:200]}: use that url (https?)", answer.status)
    try:
        told = json.loads(answer.body)
        error, detail = str(told["error"]), told.get("detail")
    except (ValueError, KeyError, TypeError):
        error, detail = f"the bus answered {answer.status}", None
    kind = KINDS.get(answer.status, BusError)
    return kind(error, answer.status, detail if isinstance(detail, dict) else None)


def retry_after_s(answer: Answer) -> float:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def pause_s(attempts: int) -> float:
    """Doubling, and half of it by chance, so that many clients do not come back together."""
    longest = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(attempts - 1, 16))
    return float(longest * random.uniform(0.5, 1.0))


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]

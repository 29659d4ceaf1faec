"""HTTP deliveries, many at once in one thread, by libcurl's event interface.

libcurl holds one deadline over a whole transfer (also against an answer that drips), keeps
connections open, and shows the address it is about to dial, which is where it must be checked.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pycurl

from routemaster.clock import Clock
from routemaster.delivery.message import Message
from routemaster.delivery.outcome import Response
from routemaster.domain.networks import Network, refused

EXCERPT_BYTES = 256
RESPONSE_BYTES = 65_536

ERRORS = {
    pycurl.E_COULDNT_RESOLVE_HOST: "dns",
    pycurl.E_COULDNT_CONNECT: "refused",
    pycurl.E_OPERATION_TIMEDOUT: "timeout",
    pycurl.E_SEND_ERROR: "reset",
    pycurl.E_RECV_ERROR: "reset",
    pycurl.E_GOT_NOTHING: "reset",
    pycurl.E_PARTIAL_FILE: "reset",
    pycurl.E_SSL_CONNECT_ERROR: "tls",
    pycurl.E_PEER_FAILED_VERIFICATION: "tls",
    pycurl.E_SSL_CERTPROBLEM: "tls",
    pycurl.E_SSL_CACERT_BADFILE: "tls",
}


@dataclass(frozen=True, slots=True)
class CourierRules:
    timeout_s: float
    connect_timeout_s: float
    ssl_verify: bool
    allowed_networks: Sequence[Network]
    kept_connections: int = 100


@dataclass(slots=True)
class Transfer:
    key: Hashable
    curl: Any
    status: int = 0
    has_head: bool = False
    retry_after: str = ""
    excerpt: bytearray = field(default_factory=bytearray)
    received: int = 0
    refused: str = ""

    def header(self, line: bytes) -> None:
        if line.startswith(b"HTTP/"):  # a new head: what an interim answer said is void
            parts = line.split(None, 2)  # at the line's end too: there may be no reason
            self.status = int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0
            self.retry_after, self.has_head = "", False
        elif not line.strip():
            self.has_head = True
        elif line[:12].lower() == b"retry-after:":
            self.retry_after = line[12:].decode("latin-1").strip()

    def body(self, chunk: bytes) -> int:
        self.received += len(chunk)
        self.excerpt += chunk[: EXCERPT_BYTES - len(self.excerpt)]
        # Anything but the length ends the transfer; the status is known by now.
        return len(chunk) if self.received <= RESPONSE_BYTES else -1


class Dialled:
    """pycurl gives libcurl a duplicate of the descriptor and drops this object, which must not
    leave its own to the garbage collector: that is a ResourceWarning for each dial."""

    def __init__(self, opened: socket.socket) -> None:
        self._opened = opened

    def fileno(self) -> int:
        return self._opened.fileno()

    def __del__(self) -> None:
        self._opened.close()


class Courier:
    def __init__(self, rules: CourierRules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, rules.kept_connections)
        self._timer_ms: int | None = None
        self._idle: list[Any] = []
        self._transfers: dict[Any, Transfer] = {}

    def __len__(self) -> int:
        return len(self._transfers)

    def listen(self, fd: int) -> None:
        """Let `wait` return when something is to be read here too."""
        self._selector.register(fd, selectors.EVENT_READ, data=fd)

    def ignore(self, fd: int) -> None:
        self._selector.unregister(fd)

    def send(self, key: Hashable, message: Message) -> None:
        curl = self._idle.pop() if self._idle else self._handle()
        transfer = Transfer(key, curl)
        self._prepare(curl, transfer, message)
        self._transfers[curl] = transfer
        self._multi.add_handle(curl)

    def wait(self, seconds: float) -> tuple[list[tuple[Hashable, Response]], set[int]]:
        """Until something happens, `seconds` at most: what ended, and what can be read."""
        readable: set[int] = set()
        for key, events in self._selector.select(min(seconds, self._until_timer_s())):
            if key.data is not None:
                readable.add(key.data)
            else:
                self._multi.socket_action(key.fd, curl_events(events))
        if self._timer_ms is not None and self._clock.mono_ms() >= self._timer_ms:
            self._timer_ms = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        return self._ended(), readable

    def close(self) -> None:
        for curl in list(self._transfers):
            self._multi.remove_handle(curl)
            curl.close()
        self._multi.close()
        self._selector.close()

    def _handle(self) -> Any:
        """With all that is the same for every transfer. It is used again and again."""
        rules, curl = self._rules, pycurl.Curl()
        curl.setopt(pycurl.POST, 1)
        curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        curl.setopt(pycurl.TIMEOUT_MS, round(rules.timeout_s * 1000))
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, round(rules.connect_timeout_s * 1000))
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.PROXY, "")  # not the environment's
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.SSL_VERIFYPEER, int(rules.ssl_verify))
        curl.setopt(pycurl.SSL_VERIFYHOST, 2 * int(rules.ssl_verify))
        curl.setopt(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2)
        return curl

    def _prepare(self, curl: Any, transfer: Transfer, message: Message) -> None:
        """Everything that differs between two transfers, so that nothing is left of the last."""
        curl.setopt(pycurl.URL, message.url)
        curl.setopt(pycurl.POSTFIELDSIZE, len(message.body))
        curl.setopt(pycurl.POSTFIELDS, message.body)
        curl.setopt(pycurl.HTTPHEADER, message.headers)
        curl.setopt(pycurl.HEADERFUNCTION, transfer.header)
        curl.setopt(pycurl.WRITEFUNCTION, transfer.body)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._opener(transfer))

    def _opener(self, transfer: Transfer) -> Any:
        def open_socket(purpose: int, address: Any) -> Any:
            family, kind, protocol, where = address
            reason = refused(where[0], self._rules.allowed_networks)
            if reason:
                transfer.refused = reason
                return pycurl.SOCKET_BAD
            return Dialled(socket.socket(family, kind, protocol))

        return open_socket

    def _watch(self, what: int, fd: int, multi: Any, data: Any) -> None:
        known = fd in self._selector.get_map()
        if what == pycurl.POLL_REMOVE:
            if known:
                self._selector.unregister(fd)
            return
        events = selector_events(what)
        if known:
            self._selector.modify(fd, events)
        else:
            self._selector.register(fd, events)

    def _set_timer(self, wait_ms: int) -> None:
        self._timer_ms = None if wait_ms < 0 else self._clock.mono_ms() + wait_ms

    def _until_timer_s(self) -> float:
        if self._timer_ms is None:
            return float("inf")
        return max(0.0, (self._timer_ms - self._clock.mono_ms()) / 1000)

    def _ended(self) -> list[tuple[Hashable, Response]]:
        ended = []
        while True:
            left, good, bad = self._multi.info_read()
            ended += [self._close(curl, 0) for curl in good]
            ended += [self._close(curl, code) for curl, code, _ in bad]
            if not left:
                return ended

    def _close(self, curl: Any, code: int) -> tuple[Hashable, Response]:
        transfer = self._transfers.pop(curl)
        self._multi.remove_handle(curl)
        self._idle.append(curl)
        return transfer.key, response_of(transfer, code)


def response_of(transfer: Transfer, code: int) -> Response:
    # Not for any code: of a name's addresses another may have been dialled.
    if code == pycurl.E_COULDNT_CONNECT and transfer.refused:
        return Response(error=f"address_{transfer.refused}")
    # The answer was long, and we stopped reading: its status stands.
    if code and not (code == pycurl.E_WRITE_ERROR and transfer.received > RESPONSE_BYTES):
        return Response(
            error=ERRORS.get(code, "network"),
            excerpt=bytes(transfer.excerpt),
            received_bytes=transfer.received,
        )
    # libcurl is content with a connection that is closed within the head of an answer. We are not:
    # who breaks off has not taken the batch.
    if not transfer.has_head:
        return Response(error="reset")
    return Response(
        status=transfer.status,
        retry_after=transfer.retry_after,
        excerpt=bytes(transfer.excerpt),
        received_bytes=transfer.received,
    )


def curl_events(events: int) -> int:
    mask: int = pycurl.CSELECT_IN if events & selectors.EVENT_READ else 0
    return mask | (pycurl.CSELECT_OUT if events & selectors.EVENT_WRITE else 0)


def selector_events(what: int) -> int:
    reading = what in (pycurl.POLL_IN, pycurl.POLL_INOUT)
    writing = what in (pycurl.POLL_OUT, pycurl.POLL_INOUT)
    return (selectors.EVENT_READ if reading else 0) | (selectors.EVENT_WRITE if writing else 0)

"""gunicorn's threads, with a limit on how long one waits for a client, and answers in JSON to what
gunicorn itself refuses."""

from __future__ import annotations

import json
import socket
import struct
from http import HTTPStatus
from typing import Any

from gunicorn import util
from gunicorn.http import errors

from routemaster.web.parking import ParkingThreadWorker

READ_S = 10
REFUSED = {
    errors.LimitRequestLine: (414, "the request line is too long"),
    errors.LimitRequestHeaders: (431, "the headers are too long, or too many"),
    errors.UnsupportedTransferCoding: (501, "Transfer-Encoding must be chunked"),
    errors.ExpectationFailed: (417, "Expect must be 100-continue"),
}
NOT_HTTP = (400, "this is not a valid HTTP/1.1 request")
OURS = (errors.InvalidResponseHeader, errors.InvalidResponseHeaderName, errors.ConfigurationProblem)


class BoundedThreadWorker(ParkingThreadWorker):
    def enqueue_req(self, conn: Any) -> None:
        # gunicorn reads without a time limit: a client that sends half a request and stops would
        # hold its thread for ever. The kernel's limit holds however often the socket is set to
        # blocking.
        limit = struct.pack("ll", READ_S, 0)
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        super().enqueue_req(conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        if not isinstance(exc, errors.ParseException) or isinstance(exc, OURS):
            super().handle_error(req, client, addr, exc)
            return
        # Neither the answer nor the log repeats the request, in which a token may stand.
        status, why = REFUSED.get(type(exc), NOT_HTTP)
        self.log.warning("refused status=%s kind=%s", status, type(exc).__name__)
        try:
            util.write_nonblock(client, refusal(status, why))
        except OSError:
            pass  # it does not wait for an answer


def refusal(status: int, why: str) -> bytes:
    body = json.dumps({"error": why})
    head = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Connection: close",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join([*head, "", body]).encode()

"""gunicorn's threads, with a limit on how long one waits for a client."""

from __future__ import annotations

import socket
import struct
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

READ_S = 10


class BoundedThreadWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no type hints
    def enqueue_req(self, conn: Any) -> None:
        # gunicorn reads without a time limit: a client that sends half a request and stops would
        # hold its thread for ever. The kernel's limit holds however often the socket is set to
        # blocking.
        limit = struct.pack("ll", READ_S, 0)
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        super().enqueue_req(conn)

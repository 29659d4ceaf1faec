"""gunicorn's threads, given back while a request waits: its socket lies with the main loop, which
sees when the client goes, and the request is served again when there may be something for it."""

from __future__ import annotations

import selectors
import socket
import threading
from functools import partial
from typing import Any

from gunicorn.workers.gthread import ThreadWorker

from routemaster.web.reader import Reader
from routemaster.web.streams import STREAMS, Streamed, Streams
from routemaster.web.waiting import ROOM, TURN, Parked, Place, Room, Turn


class ParkingThreadWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no type hints
    wsgi: Any

    def load_wsgi(self) -> None:
        super().load_wsgi()
        self._serving = threading.local()
        application = self.wsgi
        # Another application than ours has none, and nothing of it waits.
        self._room: Room | None = getattr(application, "extensions", {}).get(ROOM)
        if self._room is None:
            return
        self._streams: Streams = application.extensions[STREAMS]

        def serve(environ: Any, start_response: Any) -> Any:
            environ[TURN] = self._serving.turn
            return application(environ, start_response)

        self.wsgi = serve

    def handle_exit(self, sig: Any, frame: Any) -> None:
        super().handle_exit(sig, frame)
        if self._room:
            self._room.close()
            self._streams.close()

    def handle_request(self, req: Any, conn: Any, turn: Turn | None = None) -> Any:
        self._serving.turn = turn or Turn(may_park=True)
        try:
            return super().handle_request(req, conn)
        except (Parked, Streamed) as left:
            return left, req, self._serving.turn

    def _keepalive_after(self, conn: Any, keepalive: Any) -> Any:
        has_left = isinstance(keepalive, tuple)  # its thread, as handle_request says
        return keepalive if has_left else super()._keepalive_after(conn, keepalive)

    def finish_request(self, conn: Any, fs: Any) -> None:
        result = None if fs.cancelled() or fs.exception() else fs.result()
        if not isinstance(result, tuple):
            super().finish_request(conn, fs)
        elif isinstance(result[0], Streamed):
            self._stream(conn, result[0])
        else:
            self._park(conn, *result)

    def _park(self, conn: Any, parked: Parked, req: Any, turn: Turn) -> None:
        resume = partial(self._resume, conn, req, turn)
        place = Place(
            parked.subscriber,
            parked.ticket,
            parked.until_ms,
            partial(self.method_queue.defer, resume),
        )
        conn.sock.setblocking(False)
        self.poller.register(
            conn.sock, selectors.EVENT_READ, partial(self._on_parked_readable, conn, place)
        )
        assert self._room, "only who has one parks"
        self._room.enter(place)

    def _on_parked_readable(self, conn: Any, place: Place, client: Any) -> None:
        """It says nothing until it is answered, so this is its end; or its next request, early."""
        self.poller.unregister(client)
        try:
            has_gone = not client.recv(1, socket.MSG_PEEK)
        except OSError:
            has_gone = True
        if has_gone and self._room and self._room.leave(place):
            self.nr_conns -= 1
            conn.close()

    def _stream(self, conn: Any, asked: Streamed) -> None:
        conn.sock.setblocking(False)
        ended = partial(self.method_queue.defer, self._end_stream, conn)
        self._streams.add(Reader(asked.topic, conn.sock, asked.may_read, ended, asked.last))

    def _end_stream(self, conn: Any) -> None:
        self.nr_conns -= 1
        conn.close(graceful=True)

    def _resume(self, conn: Any, req: Any, turn: Turn) -> None:
        try:
            self.poller.unregister(conn.sock)
        except (KeyError, ValueError, OSError):
            pass  # it was readable
        done = self.tpool.submit(self._again, conn, req, turn)
        done.add_done_callback(
            lambda future: self.method_queue.defer(self.finish_request, conn, future)
        )

    def _again(self, conn: Any, req: Any, turn: Turn) -> Any:
        """As ThreadWorker.handle, with a request that was read before."""
        try:
            conn.sock.setblocking(True)
            return self._keepalive_after(conn, self.handle_request(req, conn, turn))
        except (StopIteration, OSError):
            return False  # the client has gone
        except Exception as error:
            self.handle_error(req, conn.sock, conn.client, error)
            return False

"""The ceiling: as little as a publish can be on the same server. `python -m bench.bare`.

Checks the token, reads the body, makes the script call with arguments prepared beforehand, and
answers. It has no router, no parser, no checks and no error answers. The path is
/topic/number-of-events.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from gunicorn.app.base import BaseApplication

from bench.calls import Call
from routemaster import bus as bus_module
from routemaster.bus import Bus
from routemaster.dotenv import read_settings
from routemaster.settings import Settings
from routemaster.web.__main__ import options

Handler = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class BareServer(BaseApplication):  # type: ignore[misc]  # gunicorn has no type hints
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        for name, value in options(self._settings).items():
            self.cfg.set(name, value)

    def load(self) -> Handler:
        return handler(bus_module.assemble(self._settings))


def handler(bus: Bus) -> Handler:
    clients = bus.directory.fresh().clients
    calls: dict[str, Call] = {}

    def handle(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/health":
            return answer(start_response, "200 OK")
        encoded = environ["HTTP_AUTHORIZATION"].partition(" ")[2]
        token = base64.b64decode(encoded).partition(b":")[0]
        if hashlib.sha256(token).hexdigest() not in clients:
            return answer(start_response, "401 Unauthorized")
        environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        if path not in calls or not calls[path].run(bus.link):
            # The first time, or subscriptions have changed.
            _, topic, events = path.split("/")
            calls[path] = Call.publishing(bus, topic, int(events))
            if not calls[path].run(bus.link):
                return answer(start_response, "503 Service Unavailable")
        return answer(start_response, "204 No Content")

    return handle


def answer(start_response: Callable[..., Any], status: str) -> Iterable[bytes]:
    start_response(status, [])
    return []


if __name__ == "__main__":
    BareServer(read_settings()).run()

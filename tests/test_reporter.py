"""Exceptions reach Sentry by its own transport, wherever they are caught; secrets do not."""

from __future__ import annotations

import gzip
import json
import logging
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import sentry_sdk

from routemaster import reporter
from routemaster.bus import assemble
from routemaster.domain.job import Job
from routemaster.errors import SettingsError
from routemaster.redis_server import find_servers
from routemaster.settings import Settings
from routemaster.start import prepare
from routemaster.web import create_app
from routemaster.worker.__main__ import keep_house
from routemaster.worker.aux import AuxConsumer
from tests.conftest import ROOT_KEY
from tests.servers import RedisServer

PASSWORD = "redis-password-0123456789"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Sentry(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.came = threading.Condition()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def dsn(self) -> str:
        return f"http://0123456789abcdef0123456789abcdef@127.0.0.1:{self.server_port}/7"

    def events(self) -> list[dict[str, Any]]:
        sentry_sdk.flush(10)
        found = []
        for body in self.bodies:
            lines = body.split(b"\n")
            found += [
                json.loads(lines[n + 1])
                for n, line in enumerate(lines)
                if line.startswith(b'{"type":"event"')
            ]
        return found


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.bodies.append(body)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def redis_server(shared_servers) -> RedisServer:
    """One flavour is enough here."""
    server: RedisServer = shared_servers(find_servers()[0])
    server.reset()
    return server


@pytest.fixture
def sentry():
    server = Sentry()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    sentry_sdk.get_client().close()
    sentry_sdk.init()
    root = logging.getLogger()
    root.handlers[:] = [h for h in root.handlers if not isinstance(h, reporter.ToSentry)]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def reporting(settings, sentry) -> Settings:
    found: Settings = replace(settings, reporter="sentry", sentry_dsn=sentry.dsn)
    secretive = replace(found, redis_url=f"redis://:{PASSWORD}@127.0.0.1:1/0")
    reporter.install(secretive, "worker")
    return found


def fail(*_: object) -> Any:
    token = "-".join(("a", "local", "variable"))
    raise ValueError(f"no good: {ROOT_KEY} {PASSWORD} {SECRET} Basic dXVpZDp4 {len(token)}")


class Broken:
    """Housekeeping that fails once."""

    def __init__(self) -> None:
        self.stop = threading.Event()

    def step(self) -> None:
        self.stop.set()
        fail()

    def goodbye(self) -> None:
        pass


def values(event: dict[str, Any]) -> list[str]:
    return [found["value"] for found in event["exception"]["values"]]


def in_the_web(settings: Settings) -> None:
    app = create_app(assemble(settings))
    app.add_url_rule("/broken", view_func=fail)
    assert app.test_client().get("/broken").status_code == 500


def in_housekeeping(settings: Settings) -> None:
    house: Any = Broken()
    thread = threading.Thread(target=keep_house, args=(house, house.stop))
    thread.start()
    thread.join()


def in_an_aux_job(settings: Settings) -> None:
    bus = assemble(settings)
    bus.aux.push(Job("broken").dump())
    AuxConsumer(bus, "w", {"broken": fail}, threading.Event()).step()
    bus.link.close()


def in_a_thread_that_nobody_watches(settings: Settings) -> None:
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "where", [in_the_web, in_housekeeping, in_an_aux_job, in_a_thread_that_nobody_watches]
)
def test_an_exception_is_told_without_secrets(reporting, sentry, where):
    where(reporting)
    [event] = sentry.events()
    assert values(event) == ["no good: *** *** *** Basic *** 16"]
    assert event["tags"]["process"] == "worker"
    everything = b"".join(sentry.bodies).decode()
    for secret in (ROOT_KEY, PASSWORD, SECRET, "a-local-variable"):
        assert secret not in everything
    assert "request" not in event and "modules" not in event and "sys.argv" not in everything


def test_what_is_no_exception_is_not_told(reporting, sentry):
    logging.getLogger("x").error("only words")
    logging.getLogger("x").warning("a warning", exc_info=ValueError("expected"))
    assert sentry.events() == []


def test_a_sentry_that_is_away_does_no_harm(settings):
    away = replace(settings, reporter="sentry", sentry_dsn="http://key@127.0.0.1:1/7")
    reporter.install(away, "web")
    try:
        in_the_web(settings)
    finally:
        sentry_sdk.get_client().close(timeout=0)
        sentry_sdk.init()
        root = logging.getLogger()
        root.handlers[:] = [h for h in root.handlers if not isinstance(h, reporter.ToSentry)]


def test_without_the_package_the_start_says_what_to_install(settings, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    env = {"ROUTEMASTER_ROOT_KEY": ROOT_KEY, "ROUTEMASTER_REPORTER": "sentry",
           "ROUTEMASTER_SENTRY_DSN": "https://key@sentry.example/1"}  # fmt: skip
    with pytest.raises(SettingsError, match=r"pip install 'routemaster\[sentry\]'"):
        prepare(tmp_path / ".env", env)


def test_sentry_is_not_loaded_unless_it_is_used():
    code = "import sys, routemaster.worker.__main__; print('sentry_sdk' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


@pytest.mark.parametrize("dsn", ["x", "https://sentry.example/1", "https://key@/1", "ftp://k@h/1"])
def test_a_wrong_dsn_is_refused_without_showing_it(dsn):
    env = {"ROUTEMASTER_ROOT_KEY": ROOT_KEY, "ROUTEMASTER_SENTRY_DSN": dsn}
    with pytest.raises(SettingsError) as caught:
        Settings.from_env(env)
    [problem] = caught.value.problems
    assert problem.startswith("ROUTEMASTER_SENTRY_DSN must be") and dsn not in problem


def test_sentry_needs_its_dsn():
    env = {"ROUTEMASTER_ROOT_KEY": ROOT_KEY, "ROUTEMASTER_REPORTER": "sentry"}
    with pytest.raises(SettingsError, match="ROUTEMASTER_SENTRY_DSN must be set"):
        Settings.from_env(env)

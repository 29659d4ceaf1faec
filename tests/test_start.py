from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import redis

from routemaster import start
from routemaster.errors import SettingsError
from routemaster.settings import Settings
from tests.servers import free_port
from tests.started import ROOT, WITHIN_S, bus

GOOD_KEY = "kq7" * 12


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_starts_answers_stops_and_keeps_its_data(tmp_path, number):
    with bus(tmp_path) as first:
        assert first.health()
        with redis.Redis(unix_socket_path=str(first.socket)) as client:
            client.set("of-the-test", "kept")
        first.stop(number)
        assert first.remaining() == [], first.output.read_text()
    key = (tmp_path / ".env").read_text()
    with bus(tmp_path) as second:
        assert second.health()
        with redis.Redis(unix_socket_path=str(second.socket)) as client:
            assert client.get("of-the-test") == b"kept"
    assert (tmp_path / ".env").read_text() == key


def test_the_processes_that_run_are_seen_by_this_test(tmp_path):
    """Else the test above would prove nothing."""
    with bus(tmp_path) as it:
        it.health()
        seen = "\n".join(it.remaining())
    assert {"web", "worker", "redis_server"} <= set(re.findall(r"routemaster\.(\w+)", seen))
    assert str(it.socket) in seen


def test_plain_honcho_works_once_there_is_a_key(tmp_path):
    port = free_port()
    (tmp_path / ".env").write_text(f"export ROUTEMASTER_ROOT_KEY={GOOD_KEY}\nexport PORT={port}\n")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    honcho = (sys.executable, "-m", "honcho", "-f", str(ROOT / "Procfile"), "start")
    with bus(tmp_path, honcho, PATH=path, PORT=None) as it:
        it.port = port
        assert it.health()


def test_it_says_where_it_listens_and_what_to_try(tmp_path):
    (tmp_path / ".env").write_text("PORT=1\n")  # honcho alone would let this win
    with bus(tmp_path) as it:
        it.health()
        said = it.output.read_text()
    assert f"http://127.0.0.1:{it.port}" in said
    key = (tmp_path / ".env").read_text().strip().rpartition("=")[2]
    assert key in said
    assert "\033" not in said


def test_production_refuses_to_start_without_a_key(tmp_path):
    with bus(tmp_path, ROUTEMASTER_ENV="production", ROUTEMASTER_TIMEOUT="soon") as it:
        assert it.process.wait(WITHIN_S) == 78
    said = it.output.read_text()
    assert "ROUTEMASTER_ROOT_KEY" in said and "ROUTEMASTER_TIMEOUT" in said
    assert not (tmp_path / ".env").exists()


def test_a_port_in_use_is_said_and_nothing_starts(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with bus(tmp_path, PORT=str(port)) as it:
            assert it.process.wait(WITHIN_S) == 1
    assert f"port {port} is in use" in it.output.read_text()
    assert not (tmp_path / "var").exists()


def test_a_misspelt_setting_is_pointed_out(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with bus(tmp_path, PORT=str(port), ROUTEMASTER_WORKER_THREAD="3") as it:
            it.process.wait(WITHIN_S)
    assert "did you mean ROUTEMASTER_WORKER_THREADS?" in it.output.read_text()


def test_the_environment_wins_over_dotenv(tmp_path):
    path = tmp_path / ".env"
    path.write_text(f"export ROUTEMASTER_ROOT_KEY={GOOD_KEY}\nexport PORT=1\nROUTEMASTER_BIND=::1")
    settings, env = start.prepare(path, {"PORT": "5000", "PATH": "/bin"})
    assert (settings.port, settings.bind, settings.root_key) == (5000, "::1", GOOD_KEY)
    assert (env["PORT"], env["ROUTEMASTER_BIND"]) == ("5000", "::1")
    assert env["PATH"] == f"{Path(sys.executable).parent}{os.pathsep}/bin"
    assert Settings.from_env(env | {"HONCHO_PROCESS_NAME": "web.1"}) == settings


@pytest.mark.parametrize("mode", ["production", "staging"])
def test_only_development_makes_a_key(tmp_path, mode):
    with pytest.raises(SettingsError):
        start.prepare(tmp_path / ".env", {"ROUTEMASTER_ENV": mode})
    assert not (tmp_path / ".env").exists()


def test_production_does_not_print_its_key():
    settings = Settings.from_env(
        {"ROUTEMASTER_ENV": "production", "ROUTEMASTER_ROOT_KEY": GOOD_KEY}
    )
    assert GOOD_KEY not in start.greeting(settings)


@pytest.mark.parametrize("shown", [True, False])
def test_the_pages_are_told(shown):
    env = {"ROUTEMASTER_ROOT_KEY": "k", "ROUTEMASTER_DASHBOARD": str(shown).lower()}
    said = start.greeting(Settings.from_env(env))
    assert "http://127.0.0.1:17890/docs" in said
    assert ("http://127.0.0.1:17890/dashboard" in said) is shown


def test_an_address_of_another_machine_is_said():
    settings = Settings.from_env({"ROUTEMASTER_ROOT_KEY": "k", "ROUTEMASTER_BIND": "192.0.2.1"})
    assert "cannot listen on 192.0.2.1" in str(start.port_problem(settings))


def test_the_commands_to_try_can_be_pasted(tmp_path):
    """Run by a shell, with a curl that answers as the bus does and writes down its arguments."""
    curl = tmp_path / "curl"
    curl.write_text(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" >> calls\n"
        """echo '{"name":"demo","token":"demo--t0ken"}'\n"""
    )
    curl.chmod(0o755)
    settings = Settings.from_env({"ROUTEMASTER_ROOT_KEY": "it's", "ROUTEMASTER_BIND": "::1"})
    commands = [line for line in start.greeting(settings).splitlines() if "curl" in line]
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["sh", "-ec", "\n".join(commands)], cwd=tmp_path, env={"PATH": path}, check=True)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [c for c in calls if c.endswith(":")] == ["it's:", "demo--t0ken:", "demo--t0ken:"]
    assert [c for c in calls if c.startswith("http")] == [
        f"http://[::1]:17890/{path}" for path in ("api_tokens", "subscription", "topics/widgets")
    ]
    bodies = [json.loads(c) for c in calls if c.startswith("{")]
    assert [sorted(b) for b in bodies] == [
        ["name"],
        ["callback", "topics", "uuid"],
        ["type", "url"],
    ]

"""The `rtm` command, on a real bus."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from routemaster.client import Client
from routemaster.rtm import COMMANDS, main
from tests.clients.gateway import Say
from tests.conftest import ROOT_KEY
from tests.e2e.receiver import Answer, in_turn
from tests.e2e.running import unique
from tests.integration.processes import CHECKOUT, eventually


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return Path(tmp_path)


def rtm(*words: object, input: str | None = None, status: int = 0) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words], input=input)
    assert result.exit_code == status, (result.output, result.exception)
    return result


@pytest.fixture
def as_root(bus) -> tuple[str, ...]:
    return "-b", bus.web.url, "-t", ROOT_KEY


@pytest.fixture
def as_client(bus, token) -> tuple[str, ...]:
    return "-b", bus.web.url, "-t", token


def rtmrc(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / ".rtmrc"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_tokens_as_the_original_spells_them(bus, as_root):
    name = unique("service")
    token = rtm("token", "add", name, *as_root).stdout.strip()
    Client(bus.web.url, token).pulse()
    listed = rtm("token", "list", *as_root).stdout
    [masked] = [line.split("\t")[0] for line in listed.splitlines() if line.endswith(f"\t{name}")]
    assert token not in listed
    chosen = unique("secret")
    assert rtm("token", "add", name, chosen, *as_root).stdout.strip() == chosen
    rtm("token", "del", chosen, *as_root)
    rtm("token", "del", masked, *as_root)
    assert name not in rtm("token", "list", *as_root).stdout


def test_subscriptions_as_the_original_spells_them(client, as_client, receiver, topic):
    words = ["cats", topic, "--batch-size", 30, "--latency", 200]
    rtm("sub", "add", receiver.url, *words, *as_client)
    [row] = client.subscribers()
    assert (row["max_events"], row["timeout"]) == (30, 200)
    assert set(row["topics"]) == {"cats", topic}
    rtm("sub", "add", "-c", receiver.url, "-o", f"dogs,{topic}", "--max", 7, *as_client)
    [row] = json.loads(rtm("sub", "list", "--json", *as_client).stdout)
    assert (row["max_events"], set(row["topics"])) == (7, {"dogs", topic})
    assert receiver.url in rtm("sub", "list", *as_client).stdout
    rtm("sub", "del", "dogs", *as_client)
    rtm("sub", "del", *as_client)
    assert client.subscribers() == []


def test_publishing_as_the_original_spells_it(as_client, receiver, topic):
    url = receiver.url.replace("://", "://the-uuid@")
    rtm("sub", "add", url, topic, "--latency", 0, *as_client)
    for word in ("created", "updated", "deleted", "noop"):
        rtm("pub", word, topic, "https://pub.example/1", "--at", 5, *as_client)
    receiver.wait_for_events(4)
    types = [event["type"] for delivery in receiver.deliveries for event in delivery.events]
    assert types == ["create", "update", "delete", "noop"]
    assert receiver.deliveries[0].user == "the-uuid:x"


def test_all_that_an_event_can_hold(as_client, receiver, topic):
    rtm("sub", "add", receiver.url, topic, *as_client)
    more = ["--data", '{"a": 1}', "--facet", "berlin", "--id", unique("id")]
    rtm("pub", "created", topic, "https://pub.example/1", *more, *as_client)
    rtm("pub", "created", topic, "https://pub.example/1", *more, *as_client)
    rtm("pub", "created", topic, "https://pub.example/2", "--facet", "berlin", *as_client)
    receiver.wait_for_events(2)
    [first, second] = [event for d in receiver.deliveries for event in d.events]
    assert (first["data"], first["facet"], second["url"]) == ({"a": 1}, "berlin",
                                                              "https://pub.example/2")  # fmt: skip


def test_subscriptions_are_paused_and_resumed_and_their_secret_replaced(
    client, as_client, as_root, receiver, topic
):
    rtm("sub", "add", receiver.url, topic, *as_client)
    name = client.subscribers()[0]["subscriber"]
    rtm("sub", "pause", *as_client)
    assert client.subscribers()[0]["state"] == "paused"
    rtm("sub", "resume", name, *as_root)
    assert client.subscribers()[0]["state"] == "active"
    old = rtm("sub", "secret", *as_client).stdout
    new = rtm("sub", "secret", "--rotate", *as_client).stdout
    assert old != new == rtm("sub", "secret", *as_client).stdout


def test_many_events_from_a_file(client, as_client, topic, tmp_path):
    lines = [json.dumps({"type": "noop", "url": f"https://pub.example/{n}"}) for n in range(1500)]
    (tmp_path / "events").write_text("\n".join([*lines, "", ""]))
    assert rtm("load", topic, "events", *as_client).stdout == "1500 events are published\n"
    again = rtm("load", topic, "-", "--json", *as_client, input="\n".join(lines))
    assert json.loads(again.stdout) == {"published": 1500}
    lines[1200] = '{"type": "noop"}'
    broken = rtm("load", topic, "-", *as_client, input="\n".join(lines), status=1)
    assert "1000 events are published" in broken.stderr
    assert "line 1201: must be an event" in broken.stderr
    [row] = [row for row in client.topics() if row["name"] == topic]
    assert row["events"] == 4000


def test_topics_are_listed_and_deleted(as_client, topic):
    rtm("pub", "noop", topic, "https://pub.example/1", *as_client)
    assert re.search(rf"^{topic}\tclient_\w+\t1$", rtm("topic", "list", *as_client).stdout, re.M)
    rtm("topic", "del", topic, *as_client)
    assert topic not in rtm("topic", "list", *as_client).stdout


def test_operations_are_shown_and_replayed(client, as_client, as_root, receiver, topic):
    receiver.script = in_turn(
        Answer(503, {"Retry-After": "3600"}), Answer(503, {"Retry-After": "3600"})
    )
    rtm("sub", "add", receiver.url, topic, "--max", 1, *as_client)
    rtm("pub", "noop", topic, "https://pub.example/1", *as_client)
    bid = receiver.wait_for_deliveries(1)[0].bid
    name = client.subscribers()[0]["subscriber"]
    # It waits when its attempt is written down.
    eventually(lambda: client.operation(bid)["attempts"])
    assert f"{bid}\tQUEUED" in rtm("ops", *as_client).stdout
    assert bid in rtm("ops", "--subscriber", name, "--status", "queued", *as_root).stdout
    assert "throttled\t503" in rtm("ops", bid, *as_client).stdout
    assert rtm("replay", bid, *as_client).stdout == "1 replayed\n"
    receiver.wait_for_deliveries(2)
    eventually(lambda: len(client.operation(bid)["attempts"]) == 2)
    done = json.loads(rtm("replay", "--all", "--json", *as_client).stdout)
    assert done == {"replayed": 1, "refused": {}}
    eventually(lambda: client.operation(bid)["status"] == "SUCCESS")
    assert json.loads(rtm("ops", bid, "--json", *as_client).stdout)["status"] == "SUCCESS"
    refused = rtm("replay", bid, "nothing", *as_client, status=1)
    assert "publish them again" in refused.stderr and "no such operation" in refused.stderr


def test_a_bus_is_measured(as_client, topic):
    rows = json.loads(rtm("bench", topic, "--events", 1100, "--json", *as_client).stdout)
    assert [(row["how"], row["events"]) for row in rows] == [
        ("one by one", 1000), ("in bulk", 1100), ("in the background", 1100)]  # fmt: skip


class TestListen:
    def stream(self, gateway, *parts: str) -> None:
        left = [part.encode() for part in parts]
        head = {"Content-Type": "text/event-stream"}
        gateway.script = lambda seen: (
            Say(200, head, left.pop(0)) if left else Say(404, {}, b'{"error": "no topic"}')
        )

    def event(self, number: int) -> str:
        event = {"topic": "t", "type": "noop", "url": f"https://pub.example/{number}", "t": number}
        return f"id: {number}\ndata: {json.dumps(event)}\n\n"

    def test_shows_events_over_a_broken_connection(self, gateway, token):
        self.stream(
            gateway,
            "retry: 2000\n: live\n\n" + self.event(1) + self.event(2)[:20],
            ':\n\nevent: skipped\ndata: {"events": 4}\n\n' + self.event(7),
        )
        done = rtm("listen", "t", "-b", gateway.url, "-t", token, "--count", 2)
        assert re.findall(r"noop +https://pub.example/(\d)", done.stdout) == ["1", "7"]
        assert "4 events were missed" in done.stderr
        assert gateway.seen[1].headers["Last-Event-ID"] == "1"

    def test_ends_with_an_error_of_the_caller(self, gateway, token):
        self.stream(gateway)
        assert "no topic" in rtm("listen", "t", "-b", gateway.url, "-t", token, status=1).stderr

    def test_relays_to_a_local_url(self, gateway, token, receiver):
        receiver.script = in_turn(Answer(500))
        self.stream(gateway, self.event(1) + self.event(2))
        words = ["--forward", receiver.url, "--count", 2, "--json", "--uuid", "me"]
        done = rtm("listen", "t", "-b", gateway.url, "-t", token, *words)
        assert [json.loads(line)["t"] for line in done.stdout.splitlines()] == [1, 2]
        assert re.findall("-> (.*)", done.stderr) == ["500", "200"]
        assert receiver.times == [1, 2]
        assert receiver.deliveries[0].user == "me:x"


def test_listens_to_a_real_bus_until_ctrl_c(as_client, topic, tmp_path):
    rtm("pub", "noop", topic, "https://pub.example/0", *as_client)
    log = tmp_path / "heard"
    with log.open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, "-m", "routemaster.rtm", "listen", topic, *as_client],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT), "PYTHONUNBUFFERED": "1"},
            stdout=out,
            stderr=out,
        )

    def is_heard() -> bool:
        rtm("pub", "updated", topic, "https://pub.example/1", *as_client)
        return "update  https://pub.example/1" in log.read_text()

    eventually(is_heard, log.read_text)
    child.send_signal(signal.SIGINT)
    assert child.wait(20) == 0
    assert "Traceback" not in log.read_text()


class TestSettingsFile:
    def test_names_buses_and_tokens(self, bus, token, topic, home):
        rtmrc(home, f'[prod]\nbus = "{bus.web.url}"\ntoken = "{token}"\n'
                    f'[ops]\ntoken = "{ROOT_KEY}"\n[default]\nbus = "{bus.web.url}"\n')  # fmt: skip
        rtm("pub", "noop", topic, "https://pub.example/1", "-b", "@prod")
        rtm("token", "list", "-b", "@prod", "-t", "@ops")
        rtm("token", "list", "-t", "@ops")
        assert "only the root key" in rtm("token", "list", "-b", "@prod", status=1).stderr
        shown = rtm("config").stdout
        assert "@prod" in shown and token not in shown

    @pytest.mark.parametrize(
        ("text", "words", "says"),
        [
            ("", [], "which bus?"),
            ("", ["-b", "@prod"], "no [prod]"),
            ('[prod]\ntoken = "t"', ["-b", "@prod"], "has no `bus`"),
            ('[prod]\nbus = "b"', ["-b", "@prod"], "which token?"),
            ("", ["-b", "ftp://b", "-t", "t"], "must be like https://"),
        ],
    )
    def test_what_is_missing_is_a_mistake_in_usage(self, home, text, words, says):
        rtmrc(home, text)
        assert says in rtm("topic", "list", *words, status=2).stderr

    @pytest.mark.parametrize("text", ["[prod", "prod = 1", "[prod]\nbus = 1", '[prod]\nurl = "a"'])
    def test_what_cannot_be_read_is_said(self, home, text):
        rtmrc(home, text)
        assert ".rtmrc" in rtm("topic", "list", "-b", "@prod", status=1).stderr

    def test_a_file_that_others_can_read_is_refused(self, home):
        rtmrc(home, '[default]\nbus = "b"\ntoken = "t"\n', 0o644)
        assert "chmod 600" in rtm("topic", "list", status=1).stderr

    @pytest.mark.parametrize(
        ("bus", "url"),
        [
            ("bus.example.com", "https://bus.example.com"),
            ("localhost:17890", "http://localhost:17890"),
            ("127.0.0.1:1", "http://127.0.0.1:1"),
            ("http://bus:1", "http://bus:1"),
            ("localhost.example.com", "https://localhost.example.com"),
        ],
    )
    def test_a_bare_name_is_reached_by_tls_unless_it_is_this_machine(self, bus, url):
        from routemaster.rtm.settings_file import resolve

        assert resolve(bus, "t") == (url, "t")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    assert "Usage: " in rtm(command, "--help").stdout


@pytest.mark.parametrize(
    "words",
    [
        ["nothing"],
        ["pub", "made", "t", "u"],
        ["pub"],
        ["replay"],
        ["sub", "add"],
        ["ops", "--limit", "0"],
    ],
)
def test_a_mistake_in_usage_has_a_status_of_its_own(words, as_client):
    rtm(*words, *(as_client if words != ["nothing"] else ()), status=2)


def test_a_failure_is_told_without_a_traceback(as_client, topic):
    done = rtm("pub", "noop", topic, "http://pub.example", *as_client, status=1)
    assert done.stderr == "Error: url: must start with https://\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete(shell):
    script = rtm("completion", shell).stdout
    assert "_RTM_COMPLETE" in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script.encode(), check=True)


def test_completion_knows_the_commands(tmp_path):
    env = {"COMP_WORDS": "rtm to", "COMP_CWORD": "1", "_RTM_COMPLETE": "bash_complete"}
    env |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, "-m", "routemaster.rtm"],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
            **env,
        },
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert "token" in done.stdout and "topic" in done.stdout


def on_a_terminal(*words: str) -> str:
    """What the command shows on a terminal of 160 columns."""
    ours, theirs = pty.openpty()
    env: dict[str, Any] = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": "160"}
    env["PYTHONPATH"] = str(CHECKOUT)
    child = subprocess.Popen(
        [sys.executable, "-m", "routemaster.rtm", *words], stdout=theirs, stderr=theirs, env=env
    )
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 1 << 16):
            shown += data
    except OSError:
        pass  # the other side has ended
    assert child.wait(30) == 0, shown
    os.close(ours)
    return shown.decode()


def test_a_terminal_gets_tables_with_colour_and_progress(as_client, receiver, topic, tmp_path):
    rtm("sub", "add", receiver.url, topic, *as_client)
    shown = on_a_terminal("sub", "list", *as_client)
    assert "\x1b[32mactive" in shown and "health" in shown
    (tmp_path / "events").write_text('{"type": "noop", "url": "https://pub.example/1"}\n')
    assert f"publishing to {topic}" in on_a_terminal(
        "load", topic, str(tmp_path / "events"), *as_client
    )

"""The README's own lines about Python and `rtm`, run as they stand against a real bus."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from routemaster.client import Client
from tests.clients.serving import serving
from tests.conftest import ROOT_KEY
from tests.e2e.running import unique
from tests.integration.processes import CHECKOUT, eventually

README = (CHECKOUT / "README.md").read_text()


def blocks(section: str, language: str) -> list[str]:
    [text] = re.findall(rf"^## {section}\n(.*?)^## ", README, re.M | re.S)
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)
    assert found
    return list(found)


@pytest.fixture
def orders(root) -> Any:
    """The README's topic, given back afterwards."""
    yield "orders"
    if "orders" in [row["name"] for row in root.topics()]:
        root.delete_topic("orders")


def filled(code: str, **words: str) -> str:
    for old, new in words.items():
        old = {"bus": "https://bus.example.com", "token": "shop--...", "secret": "whsec_..."}[old]
        code = code.replace(old, new)
    return code


def published(client: Client) -> int:
    return sum(row["events"] for row in client.topics() if row["name"] == "orders")


def test_publishing_from_python(bus, token, client, orders):
    scope: dict[str, Any] = {}
    for code in blocks("Publishing from Python", "python"):
        exec(filled(code, bus=bus.web.url, token=token), scope)
    assert published(client) == 2 + 5000 + 100
    scope["bus"].close()


def shell(folder: Path, code: str) -> str:
    """With `rtm` on the PATH, and no configuration but the folder's."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        cwd=folder,
        env={"PATH": path, "HOME": str(folder), "PYTHONPATH": str(CHECKOUT)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def test_outbox(bus, token, client, orders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [code] = blocks("Outbox", "python")
    [command] = blocks("Outbox", "bash")
    scope: dict[str, Any] = {}
    exec(code, scope)
    scope["engine"].dispose()
    shell(tmp_path, filled(command, bus=bus.web.url, token=token))
    assert published(client) == 1


def test_receiving_in_python(client, topic, capsys):
    whole, stacked = blocks("Receiving in Python", "python")
    client.subscribe([topic], "http://127.0.0.1:1/", "secret-for-the-callback")
    scope: dict[str, Any] = {"__name__": "example"}
    exec(filled(whole, secret=client.secret()), scope)
    with serving(scope["app"]) as callback:
        client.subscribe([topic], callback, "secret-for-the-callback", timeout=0)
        client.created(topic, "https://pub.example/1")
        eventually(lambda: client.subscribers()[0]["events"]["sent"])
    assert "create https://pub.example/1" in capsys.readouterr().out
    exec(filled(stacked, secret=client.secret()), scope)
    with serving(scope["receiver"]) as callback:
        client.subscribe([topic], callback, "uuid", timeout=0)
        client.created(topic, "https://pub.example/2")
        eventually(lambda: scope["dirty"].all())
    assert scope["refresh"]() == 1


def test_rtm(bus, root, receiver, orders, tmp_path):
    [code] = blocks("rtm", "bash")
    [rtmrc] = blocks("rtm", "toml")
    (tmp_path / ".rtmrc").touch(mode=0o600)
    (tmp_path / ".rtmrc").write_text(filled(rtmrc, bus=bus.web.url).replace("...", ROOT_KEY))
    name = unique("shop")
    code = filled(code, bus=bus.web.url).replace("token add shop", f"token add {name}")
    code = code.replace("https://shop.example/events", receiver.url)
    shown = shell(tmp_path, f"ROOT_KEY={ROOT_KEY}\n{code}")
    assert name in shown and '"operations"' in shown
    receiver.wait_for_events(1)

"""What a new user does, from the wheel: publish from one place, receive in another.

The bus runs where it was developed. The publisher has the wheel, `requests`, `click` and `rich`,
the subscriber has the wheel and Flask, and runs the example."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import requests

from routemaster.dotenv import load
from tests.clients.alone import link
from tests.integration.processes import eventually
from tests.servers import free_port
from tests.started import ROOT, bus

SUBJECT = "https://shop.example/orders/1"


class Place:
    """A virtual environment without pip, in a folder of its own."""

    def __init__(self, folder: Path, wheel: Path, *packages: str) -> None:
        self.folder = folder
        venv.create(folder / "venv", symlinks=True)
        self._bin = folder / "venv" / "bin"
        install = [sys.executable, "-m", "pip", "--python", str(self._bin / "python"), "install"]
        run(folder, *install, "--no-deps", "--no-index", "--quiet", str(wheel))
        [packages_folder] = (folder / "venv" / "lib").glob("python*/site-packages")
        link(packages_folder, *packages)

    def run(self, program: str, *words: str) -> str:
        return run(self.folder, str(self._bin / program), *words)

    def begin(self, log: Path, program: str, *words: str) -> subprocess.Popen[bytes]:
        command = [str(self._bin / program), *words]
        with log.open("wb") as out:
            return subprocess.Popen(
                command, cwd=self.folder, env=env_of(self.folder), stdout=out, stderr=out
            )


def env_of(folder: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONUNBUFFERED": "1"}


def run(folder: Path, *words: str, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        words, cwd=folder, env=env or env_of(folder), capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `pip install .` builds it, from a copy: it must not find what lies about."""
    folder = tmp_path_factory.mktemp("wheel")
    tracked = run(ROOT, "git", "ls-files").splitlines()
    for name in tracked:
        if (ROOT / name).is_file():
            (folder / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / "source" / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder)]
    # As the user's pip is set up: it fetches the build's own tool.
    run(folder, *build, str(folder / "source"), env=dict(os.environ))
    [built] = folder.glob("*.whl")
    return built


def snippet() -> str:
    """The README's first lines of Python."""
    text = (ROOT / "README.md").read_text().split("\n## Publishing from Python\n")[1]
    found = re.search(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert found
    return found[1]


def in_the_dashboard(url: str, token: str, path: str) -> str:
    """The page as somebody with that token sees it."""
    with requests.Session() as browser:
        form = browser.get(f"{url}/dashboard/sign-in").text
        found = re.search(r'name="form_token" value="(\w+)"', form)
        assert found
        fields = {"token": token, "form_token": found[1]}
        browser.post(f"{url}/dashboard/sign-in", fields, headers={"Origin": url})
        return browser.get(f"{url}/dashboard{path}").text


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_new_user_publishes_and_receives(tmp_path, wheel):
    for name in ("bus", "shop", "mailer"):
        (tmp_path / name).mkdir()
    shop = Place(tmp_path / "shop", wheel, "requests", "click", "rich")
    mailer = Place(tmp_path / "mailer", wheel, "flask")
    with bus(tmp_path / "bus") as running:
        running.health()
        root_key = load(tmp_path / "bus" / ".env", {})["ROUTEMASTER_ROOT_KEY"]
        url, port = f"http://127.0.0.1:{running.port}", free_port()
        tokens = {
            name: shop.run("rtm", "token", "add", name, "-b", url, "-t", root_key)
            for name in ("shop", "mailer")
        }
        as_mailer = ["-b", url, "-t", tokens["mailer"]]
        callback = f"http://127.0.0.1:{port}/events"
        shop.run("rtm", "sub", "add", callback, "orders", "--uuid", "my-uuid", *as_mailer)
        secret = shop.run("rtm", "sub", "secret", *as_mailer)

        example, log = str(ROOT / "examples" / "flask_receiver.py"), tmp_path / "received"
        child = mailer.begin(log, "python", example, "my-uuid", secret, "--port", str(port))
        try:
            eventually(lambda: "Running on" in log.read_text(), log.read_text)
            code = snippet().replace("https://bus.example.com", url)
            shop.run("python", "-c", code.replace("shop--...", tokens["shop"]))
            eventually(lambda: f"orders update {SUBJECT}" in log.read_text(), log.read_text)
        finally:
            child.terminate()
            child.wait(20)
        kinds = re.findall(rf"^orders (\w+) {SUBJECT} \d+$", log.read_text(), re.M)
        assert sorted(kinds) == ["create", "update"]
        assert "SUCCESS" in shop.run("rtm", "ops", *as_mailer)
        assert "success" in in_the_dashboard(url, tokens["mailer"], "/subscribers/mailer")

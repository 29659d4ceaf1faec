"""The README's five-minute tour, pasted into a shell as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from routemaster.bus import assemble
from routemaster.dotenv import load
from routemaster.settings import Settings
from tests.started import ROOT, bus

TOUR = re.search(r"^## Five-minute tour\n(.*?)^## ", (ROOT / "README.md").read_text(), re.M | re.S)
assert TOUR
COMMANDS = re.findall(r"^```bash\n(.*?)^```", TOUR[1], re.M | re.S)
ANSWER = re.findall(r"^```json\n(.*?)^```", TOUR[1], re.M | re.S)
GOODBYE = -1


def paste(folder: Path, port: int, commands: list[str]) -> str:
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
        cwd=folder,
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def test_the_tour_works_by_copy_and_paste(tmp_path):
    with bus(tmp_path) as running:
        running.health()
        output = paste(tmp_path, running.port, COMMANDS[:GOODBYE])
        assert ANSWER[0].strip() in output
        env = load(tmp_path / ".env", {"ROUTEMASTER_DATA_DIR": str(tmp_path / "var")})
        parts = assemble(Settings.from_env(env))
        (mailer,) = parts.subscribers.summaries(["mailer"])
        assert (mailer.queued, mailer.topics) == (5, ["orders"])
        (listed,) = json.loads(re.findall(r"^\[.*mailer.*?\](?=\[)", output, re.M)[0])
        assert listed["events"]["queued"] == 5

        # Twice is as good as once: a newcomer pastes again after a mistake.
        paste(tmp_path, running.port, COMMANDS)
        assert parts.subscribers.summaries(["mailer"]) == []
        parts.link.close()

"""Who only publishes or receives installs nothing of what the bus needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.clients.alone import link

ROOT = Path(__file__).resolve().parents[2]


def python(folder: Path, code: str, *distributions: str) -> str:
    """Runs it where there is this package and, of all others, only these."""
    (folder / "routemaster").symlink_to(ROOT / "routemaster")
    link(folder, *distributions)
    return subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}",
        ],
        env={"PATH": os.environ["PATH"]},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=30,
    ).stdout


FOREIGN = """
import sys
ours = set(sys.stdlib_module_names) | {"routemaster", "__main__"}
files = [name for name, module in sys.modules.items() if getattr(module, "__file__", None)]
print(sorted({name.partition(".")[0] for name in files} - ours))
"""


def test_the_client_needs_requests_only(tmp_path):
    seen = python(tmp_path, "from routemaster.client import Client" + FOREIGN, "requests")
    allowed = {"requests", "urllib3", "idna", "certifi", "charset_normalizer"}
    names = {name for name in eval(seen) if "__mypyc" not in name}
    assert names <= allowed


def test_the_receiver_needs_nothing(tmp_path):
    assert python(tmp_path, "import routemaster.receiver" + FOREIGN) == "[]\n"


def test_the_command_needs_what_the_extra_names(tmp_path):
    code = "from routemaster.rtm import main; main(['sub', '--help'], standalone_mode=False)"
    assert "resume" in python(tmp_path, code, "requests", "click", "rich")

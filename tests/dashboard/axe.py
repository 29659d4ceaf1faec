"""axe-core, the checker of accessibility: fetched from npm once, never part of this repository."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome

VERSION = "4.14.0"
SHA256 = "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"  # of axe.min.js
CACHE = Path(sys.prefix) / f"axe-core-{VERSION}.js"
FETCH_S = 120
RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]}).then((found) => done(found.violations), done);
"""
SERIOUS = ("serious", "critical")


def why_not() -> str:
    """'' when it is there, or can be fetched."""
    return "" if CACHE.exists() or shutil.which("npm") else "needs npm, to fetch axe-core"


def source() -> str:
    if not CACHE.exists():
        fetch()
    text = CACHE.read_bytes()
    assert hashlib.sha256(text).hexdigest() == SHA256, f"{CACHE} is not axe-core {VERSION}"
    return text.decode()


def fetch() -> None:
    folder = CACHE.with_suffix(".tmp")
    folder.mkdir(exist_ok=True)
    command = ["npm", "pack", "--silent", f"axe-core@{VERSION}"]
    subprocess.run(command, cwd=folder, check=True, timeout=FETCH_S, stdout=subprocess.DEVNULL)
    with tarfile.open(folder / f"axe-core-{VERSION}.tgz") as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member
        CACHE.write_bytes(member.read())
    shutil.rmtree(folder)


def problems(driver: Chrome) -> list[str]:
    """What is serious about the page that is open, each with the elements it is about."""
    driver.execute_script(source())
    found: list[dict[str, Any]] = driver.execute_async_script(RUN)
    assert isinstance(found, list), found
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
        for one in found
        if one["impact"] in SERIOUS
    ]

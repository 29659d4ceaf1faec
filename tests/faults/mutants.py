"""Deliberate bugs, each of which a test must notice: `make mutants`, or some by name with
`python -m tests.faults.mutants NAME...`.

Each is a patch whose head says what is wrong, and `Caught by:` which tests find it out. Those run
on a scratch copy of the checkout, without the patch (they pass) and with it (they fail).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent / "mutants"
HEAD = re.compile(r"(?P<why>.+)\nCaught by: (?P<tests>.+)\n\ndiff ")
LEFT_OUT = (".git", ".venv", "var", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache")
PASSED, FAILED = 0, 1
LONGEST_S = 600


@dataclass(frozen=True)
class Mutant:
    path: Path
    why: str
    tests: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Mutant:
        head = HEAD.match(path.read_text())
        assert head, f"{path.name} does not begin with what is wrong, and who notices it"
        return cls(path, head["why"], tuple(shlex.split(head["tests"])))

    def apply(self, copy: Path, *options: str) -> subprocess.CompletedProcess[str]:
        # Not within a repository that happens to be around the copy.
        env = os.environ | {"GIT_CEILING_DIRECTORIES": str(copy.parent)}
        return subprocess.run(
            ["git", "apply", *options, str(self.path)],
            cwd=copy, env=env, capture_output=True, text=True,
        )  # fmt: skip


def mutants() -> list[Mutant]:
    return [Mutant.read(path) for path in sorted(FOLDER.glob("*.patch"))]


@contextmanager
def scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="rm-mutant-"))
    try:
        copy = folder / "checkout"
        shutil.copytree(CHECKOUT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
        yield copy
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def outcome(copy: Path, tests: tuple[str, ...]) -> int:
    """pytest's exit status: 1 says that tests failed, and not that there were none."""
    # One example that fails is enough: the state machine would look for the shortest for minutes.
    words = ["-x", "-q", "-p", "no:cacheprovider", "--redis", "first", "--timeout", "150"]
    command = [sys.executable, "-m", "pytest", *words, "-m", "not faults", *tests]
    env = os.environ | {"PYTHONPATH": str(copy), "HYPOTHESIS_NO_SHRINK": "1"}
    try:
        done = subprocess.run(command, cwd=copy, env=env, capture_output=True, timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        return FAILED
    return done.returncode


def main(names: list[str]) -> int:
    chosen = [mutant for mutant in mutants() if not names or mutant.path.stem in names]
    clean: dict[tuple[str, ...], int] = {}
    survivors = 0
    for mutant in chosen:
        with scratch() as copy:
            if mutant.tests not in clean:
                clean[mutant.tests] = outcome(copy, mutant.tests)
            applied = mutant.apply(copy)
            assert applied.returncode == 0, applied.stderr
            found = outcome(copy, mutant.tests)
        is_caught = clean[mutant.tests] == PASSED and found == FAILED
        survivors += not is_caught
        why = "" if is_caught else f" (without it {clean[mutant.tests]}, with it {found})"
        print(f"{'caught' if is_caught else 'SURVIVED'}  {mutant.path.stem}{why}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} caught")
    return 1 if survivors or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The exporter dies, or another one works beside it, between any two of its steps: every row is in
the files once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from routemaster.bus import Bus, assemble
from routemaster.export.compact import compact
from routemaster.export.drain import Drain
from routemaster.export.exporter import Exporter
from routemaster.export.folder import Folder
from tests.export.drained import batches, dropped, once, published, rows, tried
from tests.export.stepping import Killed, Steps
from tests.integration.processes import CHECKOUT

ROWS, DROPS, MINUTES, DAYS = 6, 2, 3, 2


def exporter_with(bus: Bus, folder: Folder, steps: Steps, format: str = "parquet") -> Exporter:
    wrapped = Folder(steps.wrap(folder.fs), folder.root)
    exporter = Exporter(bus, wrapped)
    exporter._drain = Drain(steps.wrap(bus.exports), wrapped, format)
    # Its own proof is in test_snapshots.py: a snapshot is a fact, whoever takes how many.
    exporter._snapshots.take = lambda: 0  # type: ignore[method-assign]
    return exporter


def fill(bus: Bus) -> None:
    bus.link.call("FLUSHALL")
    tried(bus, ROWS, days=DAYS)
    dropped(bus, DROPS)
    published(bus, MINUTES)


def steps_of_a_turn(bus: Bus, folder: Folder) -> int:
    fill(bus)
    steps = Steps(0, lambda: None)
    exporter_with(bus, folder, steps).turn()
    return steps.taken


def complete(folder: Folder) -> bool:
    assert batches(folder) == once(ROWS)
    assert Counter(r["first_seq"] for r in rows(folder, "drops")) == Counter(range(1, DROPS + 1))
    assert minutes(folder) == {1}
    return True


def minutes(folder: Folder) -> set[int]:
    """How often each minute is there."""
    found = Counter(row["minute"] for row in rows(folder, "publishes") if row["topic"] == "t")
    assert len(found) == MINUTES
    return set(found.values())


def at_each_step(bus: Bus, tmp_path, act: Callable[[Folder], None], stride: int = 1) -> None:
    """Plays a turn for each of its steps, with `act` before that step."""
    count = steps_of_a_turn(bus, Folder.of(str(tmp_path / "all")))
    assert count > 50
    for number in range(1, count + 1, stride):
        fill(bus)
        folder = Folder.of(str(tmp_path / str(number)))
        try:
            exporter_with(bus, folder, Steps(number, partial(act, folder))).turn()
        except Killed:
            pass
        Exporter(bus, folder).turn()
        assert complete(folder), number
        assert bus.link.call("XLEN", bus.keys.attempts) == 0
        assert bus.link.call("EXISTS", bus.keys.publishes_cut) == 0


def die() -> None:
    raise Killed


@pytest.mark.slow
def test_killed_before_and_after_every_step(bus, tmp_path):
    at_each_step(bus, tmp_path, lambda folder: die())


def disturb(bus: Bus, tmp_path, other: Bus, stride: int) -> None:
    def act(folder: Folder) -> None:
        Exporter(other, folder).turn()
        compact(folder, grace_s=0)

    at_each_step(bus, tmp_path, act, stride)


@pytest.mark.slow
def test_another_exporter_and_a_compaction_work_between_two_steps(bus, tmp_path, make_bus):
    disturb(bus, tmp_path, make_bus(bus.settings), 7)


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_another_exporter_and_a_compaction_work_between_any_two_steps(bus, tmp_path, make_bus):
    disturb(bus, tmp_path, make_bus(bus.settings), 1)


def test_two_exporters_race_with_each_other_and_the_bus(bus, folder, make_bus):
    """Each turn of one begins where the other's ends, in every pattern that chance brings."""
    import threading

    writing = threading.Event()
    failures: list[BaseException] = []

    def work() -> None:
        try:
            exporter = Exporter(make_bus(bus.settings), folder)
            while not writing.is_set():
                exporter.turn()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for first in range(0, 300, 10):
        tried(bus, 10, first)
    writing.set()
    for thread in threads:
        thread.join()
    assert failures == []
    Exporter(bus, folder).turn()
    assert batches(folder) == once(300)


def backup(bus: Bus) -> dict[bytes, bytes]:
    keys = bus.link.call("KEYS", "*")
    return dict(zip(keys, bus.link.many([("DUMP", key) for key in keys]), strict=True))


def restore(bus: Bus, saved: dict[bytes, bytes]) -> None:
    bus.link.call("FLUSHALL")
    bus.link.many([("RESTORE", key, 0, value) for key, value in saved.items()])


def go_back(bus: Bus, tmp_path, stride: int) -> None:
    """To before a turn that was killed; rows that its files hold are in the stream again."""
    count = steps_of_a_turn(bus, Folder.of(str(tmp_path / "all")))
    for number in range(1, count + 2, stride):
        fill(bus)
        saved = backup(bus)
        folder = Folder.of(str(tmp_path / str(number)))
        try:
            exporter_with(bus, folder, Steps(number, die)).turn()
        except Killed:
            pass
        restore(bus, saved)
        bus.link.call("XADD", bus.keys.attempts, "*", "a", late_row())
        Exporter(bus, folder).turn()
        assert batches(folder) == once(ROWS) + Counter(["late"]), number
        assert minutes(folder) == {1}, number


@pytest.mark.slow
def test_a_redis_that_goes_back_in_time_doubles_nothing(bus, tmp_path):
    """A power cut, or an old backup."""
    go_back(bus, tmp_path, 3)


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_a_redis_that_goes_back_in_time_at_any_step_doubles_nothing(bus, tmp_path):
    go_back(bus, tmp_path, 1)


def late_row() -> bytes:
    from routemaster.domain.attempt import Attempt

    at_ms = 1_763_460_000_000
    return Attempt("0", "late", 1, 2, 30, at_ms, at_ms, at_ms, "failed", 500).stream_row("s")


CHILD = """
import sys
from pathlib import Path
from tests.export.test_crashes import child
child(*sys.argv[1:])
"""


def child(url: str, data: str, root: str, at: str) -> None:
    """Runs in a process of its own, and kills it in earnest."""
    from routemaster.settings import Settings
    from tests.conftest import ROOT_KEY

    env = {
        "ROUTEMASTER_ROOT_KEY": ROOT_KEY,
        "ROUTEMASTER_REDIS_URL": url,
        "ROUTEMASTER_DATA_DIR": data,
    }
    steps = Steps(int(at), lambda: os.kill(os.getpid(), signal.SIGKILL))
    exporter_with(assemble(Settings.from_env(env)), Folder.of(root), steps).turn()


def killed_in_earnest(bus: Bus, tmp_path, number: int) -> None:
    fill(bus)
    root = tmp_path / str(number)
    words = [bus.settings.redis_address, str(tmp_path), str(root), str(number)]
    ended = subprocess.run([sys.executable, "-c", CHILD, *words], cwd=CHECKOUT, timeout=50)
    assert ended.returncode == -signal.SIGKILL
    Exporter(bus, Folder.of(str(root))).turn()
    assert complete(Folder.of(str(root)))


@pytest.mark.slow
def test_a_process_that_is_killed(bus, tmp_path):
    count = steps_of_a_turn(bus, Folder.of(str(tmp_path / "all")))
    killed_in_earnest(bus, tmp_path, count // 2)


@pytest.mark.faults
@pytest.mark.timeout(900)
def test_a_process_that_is_killed_at_each_step(bus, tmp_path):
    count = steps_of_a_turn(bus, Folder.of(str(tmp_path / "all")))
    for number in range(1, count + 1):
        killed_in_earnest(bus, tmp_path, number)

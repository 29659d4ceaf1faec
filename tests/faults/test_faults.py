"""Everything that can be done to a bus, one after the other: `make test-faults`.

Each test prints its seed; `FAULTS_SEED=n` makes the same choices again."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.faults import nemesis
from tests.faults.nemesis import KILL_POINTS, OTHERS
from tests.faults.run import run, seed_of_now

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]


@pytest.mark.parametrize("half", [0, 1])
def test_killed_at_every_named_point(half):
    run(seed_of_now(), KILL_POINTS[half::2])


def test_killed_at_random_times():
    run(seed_of_now(), [nemesis.worker_killed, nemesis.web_killed, nemesis.all_workers_killed] * 3)


def test_frozen_for_longer_than_a_lease():
    run(seed_of_now(), [nemesis.worker_frozen] * 3)


def test_redis_comes_and_goes():
    run(
        seed_of_now(),
        [
            nemesis.redis_restarted,
            nemesis.redis_killed,
            nemesis.redis_frozen,
            nemesis.redis_away,
            nemesis.redis_full,
            nemesis.scripts_forgotten,
        ],
    )


def test_the_way_to_redis_is_bad():
    scripts = ("publish", "queue_take", "queue_ack", "queue_nack", "queue_scrub")
    run(
        seed_of_now(),
        [
            nemesis.connections_cut,
            nemesis.replies_dropped,
            nemesis.redis_slow,
            nemesis.redis_unreachable,
            *(nemesis.reply_dropped_to(script) for script in scripts),
        ],
    )


def test_clocks_that_are_an_hour_wrong():
    """Each dies with a batch in its hands, whose lease must end when it should."""
    deaths = [nemesis.worker_killed_at("queue_ack", "before", slot) for slot in (0, 1)]
    run(seed_of_now(), [*deaths, nemesis.worker_frozen], clocks_h=(1, -1))


def test_restarted_one_after_the_other():
    run(seed_of_now(), [nemesis.rolling_restart] * 2)


def test_subscribers_come_and_go():
    run(seed_of_now(), [nemesis.churn, nemesis.worker_killed, nemesis.churn])


def test_whatever_comes():
    seed = seed_of_now()
    run(seed, random.Random(seed).sample([*KILL_POINTS, *OTHERS], 12))


def test_memory_runs_out_while_workers_die():
    run(seed_of_now(), [nemesis.memory_short], maxmemory="6mb")


@pytest.fixture
def small_disk():
    """A file system of a few MB, which only root can make."""
    folder = Path(tempfile.mkdtemp(prefix="rm-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        folder.rmdir()
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
    shutil.rmtree(folder, ignore_errors=True)


def test_the_disk_is_full(small_disk):
    """With `appendfsync always` Redis ends instead, which is another test."""
    run(seed_of_now(), [nemesis.disk_full(small_disk)], dir=str(small_disk), appendfsync="everysec")

"""One run: a bus under traffic, faults one after the other, rest, and the checker."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import Any

from tests.faults.cluster import Cluster, Traffic
from tests.faults.nemesis import Nemesis


def seed_of_now() -> int:
    """`FAULTS_SEED=n make test-faults` makes the same choices again."""
    given = os.environ.get("FAULTS_SEED")
    return int(given) if given else random.SystemRandom().randrange(10**6)


def run(seed: int, nemeses: Iterable[Nemesis], **options: Any) -> None:
    print(f"FAULTS_SEED={seed}")  # pytest shows it with a failure, and `make test-faults` always
    cluster = Cluster(seed, **options)
    try:
        traffic = Traffic(cluster)
        try:
            with traffic:
                traffic.flows()
                for nemesis in nemeses:
                    nemesis(cluster, traffic)
                    traffic.flows()
            cluster.check()
        finally:
            traffic.close()
    finally:
        cluster.close()

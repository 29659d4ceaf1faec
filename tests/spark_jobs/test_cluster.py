"""The reports beyond one process: a standalone cluster from the pip package, and spark-submit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from routemaster.domain.datasets import ATTEMPTS
from spark_jobs import delivery_report
from spark_jobs.java import spark_java_home
from tests.spark_jobs.rows import at, attempt_row, export_file

BIN = Path(pyspark.__file__).parent / "bin"
SCRIPT = Path(delivery_report.__file__)
PATIENCE_S = 150

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


@pytest.fixture
def environ(tmp_path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": str(spark_java_home(os.environ)),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
        "SPARK_LOCAL_DIRS": str(tmp_path / "scratch"),
    }


class Daemons:
    def __init__(self, logs: Path, environ: dict[str, str]) -> None:
        self.logs, self.environ = logs, environ
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self, name: str, kind: str, *arguments: str) -> Path:
        log = self.logs / f"{name}.log"
        command = [str(BIN / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        with log.open("wb") as out:
            started = subprocess.Popen(command, env=self.environ, stdout=out, stderr=out)
        self.running.append(started)
        return log

    def stop(self) -> None:
        for one in reversed(self.running):
            one.terminate()
        for one in self.running:
            try:
                one.wait(20)
            except subprocess.TimeoutExpired:
                one.kill()


def awaited(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"{log.name} never said {pattern}:\n{log.read_text()[-2000:]}")


@pytest.fixture
def cluster(tmp_path, environ) -> Iterator[tuple[str, list[Path]]]:
    """Its URL and its workers' logs. All ports are chosen by the system, on loopback."""
    daemons = Daemons(tmp_path, environ)
    here = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    try:
        master = daemons.start("master", "master.Master", *here)
        url = awaited(master, r"Starting Spark master at (spark://\S+)")
        room = ["--cores", "1", "--memory", "1100m"]
        workers = [
            daemons.start(f"worker-{number}", "worker.Worker", *here, *room, url)
            for number in (1, 2)
        ]
        for worker in workers:
            awaited(worker, r"(Successfully registered with master)")
        yield url, workers
    finally:
        daemons.stop()


@pytest.fixture
def export(tmp_path: Path) -> Path:
    for day in range(4):
        rows = [
            attempt_row(ATTEMPTS, at(f"{day} {hour:02}:10"), 40, hour, id=f"{day}-{hour}")
            for hour in range(24)
        ]
        export_file(tmp_path / "export", ATTEMPTS, rows, day=f"2026-03-0{2 + day}")
    return tmp_path / "export"


def test_spark_submit_runs_a_report_on_a_cluster_as_it_does_here(
    spark, cluster, environ, export, tmp_path
):
    url, workers = cluster
    arguments = ["--input", str(export), "--by", "day"]
    submit = [str(BIN / "spark-submit"), "--master", url, "--conf", "spark.executor.memory=1g"]
    there, here = str(tmp_path / "there"), str(tmp_path / "here")
    ran = subprocess.run(
        [*submit, str(SCRIPT), *arguments, "--output", there],
        env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.splitlines()[-1] == there
    for worker in workers:
        awaited(worker, r"(Asked to launch executor) .*delivery_report")
    assert delivery_report.main([*arguments, "--output", here]) == 0
    made, wanted = (spark.read.parquet(path).orderBy("period").collect() for path in (there, here))
    assert made == wanted and len(made) == 4

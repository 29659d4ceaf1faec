"""The SparkSession of the reports: UTC, quiet, and sized for where it runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.java import spark_java_home

QUIET = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"

# May be changed while a session runs, and must be so whoever started it: the day of a row and the
# meaning of an hour depend on the first.
ALWAYS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
}
# A day of minute files is 1,440 small ones: without this, opening them is what takes the time.
SMALL_FILES = {
    "spark.sql.files.openCostInBytes": "65536",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "5000",
}


def open_session(
    name: str, *, master: str = "", remote: str = "", conf: dict[str, str] | None = None
) -> SparkSession:
    """The running session when there is one: under spark-submit, in a notebook, in a test.

    What spark-submit was told (master, memory, any --conf) stays as it was told.
    """
    running = SparkSession.getActiveSession()
    if running is None and (remote or os.environ.get("SPARK_REMOTE")):
        running = connect(name, remote)
    if running is None and "PYSPARK_GATEWAY_PORT" in os.environ:
        running = submitted(name, master)
    if running is None:
        running = started(name, master or "local[*]", conf or {})
    for key, value in ALWAYS.items():
        running.conf.set(key, value)
    return running


def connect(name: str, remote: str) -> SparkSession:
    builder = SparkSession.builder.appName(name)
    return (builder.remote(remote) if remote else builder).getOrCreate()


def submitted(name: str, master: str) -> SparkSession:
    """spark-submit started the JVM. Its own --master wins over ours, and --name over `name`."""
    from pyspark import SparkConf

    told = SparkConf()
    builder = SparkSession.builder
    wanted = {"spark.app.name": name, **SMALL_FILES, **({"spark.master": master} if master else {})}
    for key, value in wanted.items():
        if not told.contains(key):
            builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def started(name: str, master: str, conf: dict[str, str]) -> SparkSession:
    os.environ["JAVA_HOME"] = str(spark_java_home(os.environ))  # where Spark's launcher looks
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in {**defaults(master), **conf}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def defaults(master: str) -> dict[str, str]:
    settings = {
        **SMALL_FILES,
        "spark.driver.extraJavaOptions": QUIET,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "true" if sys.stderr.isatty() else "false",
    }
    if not master.startswith("local"):
        return settings
    cores = os.cpu_count() or 2
    return {
        **settings,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": driver_memory(),
        # With 200, the default, a report of five seconds takes forty.
        "spark.sql.shuffle.partitions": str(max(2, cores)),
    }


def driver_memory() -> str:
    """In local mode the driver does everything: a third of the machine, 1 to 8 GB."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{max(1024, min(8192, whole // 3 // 2**20))}m"

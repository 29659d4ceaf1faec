"""An outbox in SQLite: what commits is published, once and in order, whatever dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, MetaData, create_engine, delete, insert, select

from routemaster.client import BusError, Client, Event, InvalidRequest, NotAllowed
from routemaster.client.outbox import Drainer, Outbox
from routemaster.rtm import main
from tests.clients.gateway import LOSE, PASS, Say
from tests.e2e.running import unique
from tests.integration.processes import CHECKOUT, eventually
from tests.servers import free_port


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """A server of our own, where the machine has the programs and the tests have a driver."""
    programs = [shutil.which(name) for name in ("initdb", "postgres", "pg_ctl")]
    if not all(programs) or find_spec("psycopg") is None:
        pytest.skip("needs PostgreSQL's programs on PATH, and psycopg")
    folder = Path(tempfile.mkdtemp(prefix="rm-pg-"))
    with postgres(folder) as port:
        yield f"postgresql+psycopg://routemaster@127.0.0.1:{port}/postgres"
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres(folder: Path) -> Iterator[int]:
    # It refuses to run as root.
    as_user = {"user": "postgres"} if os.getuid() == 0 else {}
    if as_user:
        shutil.chown(folder, "postgres")
    data, port = str(folder / "data"), free_port()
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    begin = ["pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "cwd": folder, "check": True, **as_user}
    subprocess.run(["initdb", "-D", data, "-U", "routemaster", "-A", "trust", "-N"], **quiet)
    subprocess.run(begin, **quiet)
    try:
        yield port
    finally:
        subprocess.run(["pg_ctl", "-D", data, "-m", "immediate", "stop"], **quiet)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'app.db'}"
    return str(request.getfixturevalue("postgresql"))


@pytest.fixture
def engine(database) -> Iterator[Engine]:
    made = create_engine(database)
    yield made
    old = MetaData()
    old.reflect(made)
    old.drop_all(made)
    made.dispose()


@pytest.fixture
def outbox(engine) -> Outbox:
    metadata = MetaData()
    made = Outbox(metadata)
    metadata.create_all(engine)
    return made


def event(number: int, **fields: Any) -> Event:
    return Event("update", f"https://pub.example/{number}", t=number, **fields)


def fill(engine: Engine, outbox: Outbox, topic: str, *numbers: int) -> None:
    with engine.begin() as connection:
        outbox.add(connection, topic, *(event(number) for number in numbers))


def rows(engine: Engine, outbox: Outbox) -> list[int]:
    with engine.connect() as connection:
        found = connection.scalars(select(outbox.table.c.event).order_by(outbox.table.c.position))
        return [json.loads(text)["timestamp"] for text in found]


def published(client: Client, topic: str) -> int:
    return sum(row["events"] for row in client.topics() if row["name"] == topic)


def test_what_commits_is_published_in_order_and_what_does_not_is_not(
    engine, outbox, client, receiver, topic
):
    client.subscribe([topic], receiver.url, "uuid", timeout=0)
    fill(engine, outbox, topic, *range(1, 1500))
    with pytest.raises(KeyError), engine.begin() as connection:
        outbox.add(connection, topic, event(5000))
        raise KeyError
    fill(engine, outbox, topic, 1500)
    assert Drainer(engine, outbox, client).drain() == 1500
    assert receiver.wait_for_events(1500) == list(range(1, 1501))
    assert rows(engine, outbox) == []


def test_a_bad_event_ends_the_transaction(engine, outbox, topic):
    with pytest.raises(InvalidRequest), engine.begin() as connection:
        outbox.add(connection, topic, event(1), Event("update", "http://pub.example"))
    assert rows(engine, outbox) == []


def test_a_crash_between_sending_and_deleting_publishes_nothing_twice(
    engine, outbox, client, topic
):
    fill(engine, outbox, topic, 1, 2, 3)
    with engine.connect() as connection:
        kept = [dict(row._mapping) for row in connection.execute(select(outbox.table))]
    Drainer(engine, outbox, client).drain()
    with engine.begin() as connection:
        connection.execute(insert(outbox.table), kept)
    assert Drainer(engine, outbox, client).drain() == 3
    assert published(client, topic) == 3


def test_a_lost_answer_publishes_nothing_twice(engine, outbox, behind, client, gateway, topic):
    fill(engine, outbox, topic, 1, 2, 3)
    gateway.in_turn(LOSE)
    assert Drainer(engine, outbox, behind).drain() == 3
    assert published(client, topic) == 3


def test_while_the_bus_is_away_events_stay(engine, outbox, token, gateway, topic):
    fill(engine, outbox, topic, 1, 2)
    gateway.script = lambda seen: Say(503)
    drainer = Drainer(engine, outbox, Client(gateway.url, token, deadline=0.1))
    with pytest.raises(BusError):
        drainer.drain()
    assert rows(engine, outbox) == [1, 2]
    gateway.in_turn()
    # And nobody has to wait for a claim.
    assert Drainer(engine, outbox, Client(gateway.url, token)).drain() == 2


def test_another_drainers_topic_is_left_to_it(engine, outbox, behind, client, gateway, topic):
    other = unique("other")
    fill(engine, outbox, topic, 1, 2)
    gateway.gate.clear()
    slow = threading.Thread(target=Drainer(engine, outbox, behind).drain)
    slow.start()
    eventually(lambda: gateway.seen)
    fill(engine, outbox, other, 3)
    assert Drainer(engine, outbox, client).drain() == 1
    assert rows(engine, outbox) == [1, 2]
    gateway.gate.set()
    slow.join(20)
    assert rows(engine, outbox) == []


def test_what_commits_late_with_an_early_number_is_not_deleted_unsent(
    engine, outbox, behind, client, gateway, topic
):
    fill(engine, outbox, topic, 1, 2, 3)
    with engine.begin() as connection:
        [late] = connection.execute(select(outbox.table).limit(1)).mappings().all()
        connection.execute(delete(outbox.table).where(outbox.table.c.position == 1))
    gateway.gate.clear()
    drainer = threading.Thread(target=Drainer(engine, outbox, behind).drain)
    drainer.start()
    eventually(lambda: gateway.seen)
    with engine.begin() as connection:
        connection.execute(insert(outbox.table), [dict(late)])
    gateway.gate.set()
    drainer.join(20)
    assert published(client, topic) == 3


def test_an_event_that_the_bus_refuses_is_kept_and_in_nobodys_way(engine, client, topic):
    metadata = MetaData()
    generous = Outbox(metadata, max_data_bytes=1000)
    metadata.create_all(engine)
    with engine.begin() as connection:
        big = event(2, data={"a": "x" * 100})
        generous.add(connection, topic, event(1), big, event(3))
    drainer = Drainer(engine, generous, client)
    assert drainer.drain() == 2
    assert (drainer.waiting().events, drainer.waiting().refused) == (0, 1)
    assert drainer.drain() == 0


def test_another_clients_topic_keeps_its_events(engine, outbox, bus, root, client, topic):
    Client(bus.web.url, root.add_token(unique("owner"))).created(topic, "https://pub.example/1")
    fill(engine, outbox, topic, 1)
    with pytest.raises(NotAllowed):
        Drainer(engine, outbox, client).drain()
    assert rows(engine, outbox) == [1]


def command(database: str, url: str, token: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "routemaster.rtm", "outbox", "drain", "--database", database,
         "--every", "0.05", "-b", url, "-t", token, *words],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(CHECKOUT), *sys.path])},
        stderr=subprocess.PIPE,
    )  # fmt: skip


@pytest.mark.slow
def test_a_drainer_that_is_killed_in_the_middle_loses_and_doubles_nothing(
    engine, outbox, database, bus, client, token, gateway, topic
):
    fill(engine, outbox, topic, *range(1, 2501))
    # The second request reaches the bus, and its answer is never told.
    gateway.script = lambda seen: PASS if len(gateway.seen) == 1 else LOSE
    child = command(database, gateway.url, token)
    eventually(lambda: len(gateway.seen) >= 2)
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=20)
    assert rows(engine, outbox) == list(range(1001, 2501))
    # As if its claim were over.
    with engine.begin() as connection:
        connection.execute(outbox.table.update().values(claimed_until_ms=0))
    second = command(database, bus.web.url, token)
    eventually(lambda: rows(engine, outbox) == [])
    second.send_signal(signal.SIGTERM)
    assert second.communicate(timeout=20)[1] and second.returncode == 0
    assert published(client, topic) == 2500


def test_the_command_ends_when_it_is_to_drain_once(engine, outbox, database, bus, token, topic):
    fill(engine, outbox, topic, 1, 2)
    words = ["--database", database, "-b", bus.web.url, "-t", token]
    done = CliRunner().invoke(main, ["outbox", "status", "--json", *words])
    assert json.loads(done.stdout) == [{"waiting": 2, "refused": 0}]
    child = command(database, bus.web.url, token, "--once")
    assert b"2 events sent" in child.communicate(timeout=20)[1]
    assert child.returncode == 0


@pytest.mark.parametrize("url", ["sqlite:////nowhere/app.db", "nothing", "sqlite://"])
def test_a_database_that_is_none_is_said(url, bus, token):
    words = ["outbox", "drain", "--once", "--database", url, "-b", bus.web.url, "-t", token]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1 and done.stderr.startswith("Error: ")

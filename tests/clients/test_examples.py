"""The examples run as their first lines say."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import pytest

from routemaster.client import Conflict
from tests.integration.processes import CHECKOUT, eventually
from tests.servers import free_port


@pytest.mark.parametrize("framework", ["flask", "django"])
def test_a_receiver_prints_what_it_receives(client, topic, tmp_path, framework):
    port, log = free_port(), tmp_path / "log"
    client.subscribe([topic], f"http://127.0.0.1:{port}/events", "my-uuid", timeout=0)
    example = CHECKOUT / "examples" / f"{framework}_receiver.py"
    with log.open("wb") as out:
        child = subprocess.Popen(
            [sys.executable, str(example), "my-uuid", client.secret(), "--port", str(port)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT)},
            stdout=out,
            stderr=out,
        )
    try:
        client.created(topic, "https://shop.example/orders/1", t=1)
        line = f"{topic} create https://shop.example/orders/1 1"
        eventually(lambda: line in log.read_text() or wake(client), log.read_text)
    finally:
        child.terminate()
        child.wait(20)


def wake(client) -> bool:
    """The example may have begun to listen after the first attempt: do not wait for the next."""
    for operation in client.operations()["operations"]:
        if operation["status"] in ("QUEUED", "ERROR") and operation["attempts"]:
            with suppress(Conflict):  # it was delivered meanwhile
                client.redeliver(operation["id"])
    return False

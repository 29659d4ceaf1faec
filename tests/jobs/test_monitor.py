from __future__ import annotations

import json
import socket

from routemaster.jobs.monitor import Monitor
from routemaster.metrics.print import PrintAdapter
from routemaster.metrics.statsd import StatsdAdapter
from tests.busses import event, follow, give_token, publish


def with_events(bus) -> None:
    give_token(bus, "pub")
    follow(bus, "mailer", "orders")
    publish(bus, "pub", "orders", json.dumps([event(), event(), event()]).encode())


def test_every_gauge_and_counter_is_printed(bus, capsys):
    with_events(bus)
    bus.workers.beat("w1")
    bus.workers.beat("dead", now_ms=1)
    Monitor(bus, [PrintAdapter()]).run(lambda: False)
    lines = capsys.readouterr().out.splitlines()
    assert "gauge name=events.queued value=3 subscriber=mailer" in lines
    assert "gauge name=batches.queued value=1 subscriber=mailer" in lines
    assert "gauge name=jobs value=1 queue=main state=scheduled" in lines
    assert "gauge name=jobs value=0 queue=aux state=pending" in lines
    assert "gauge name=workers value=1" in lines
    assert "counter name=events.published value=3 topic=orders" in lines
    assert "counter name=events.added value=3 subscriber=mailer" in lines
    [used] = [line for line in lines if line.startswith("gauge name=redis.used_bytes")]
    assert int(used.rpartition("=")[2]) > 100_000


def test_the_oldest_batch_has_an_age(bus, capsys):
    with_events(bus)
    lanes = bus.keys.lanes("mailer")
    bus.link.call("ZADD", lanes, "1000", "0")  # begun in 1970
    Monitor(bus, [PrintAdapter()]).run(lambda: False)
    [line] = [li for li in capsys.readouterr().out.splitlines() if "oldest_age_seconds" in li]
    assert line.endswith(" subscriber=mailer")
    assert float(line.split("value=")[1].split()[0]) > 50 * 365 * 86400


def test_who_has_nothing_queued_is_told_as_nothing(bus, capsys):
    follow(bus, "idle", "orders")
    Monitor(bus, [PrintAdapter()]).run(lambda: False)
    assert "gauge name=events.queued value=0 subscriber=idle\n" in capsys.readouterr().out


def test_statsd_gets_datagrams_with_tags(bus):
    with_events(bus)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        Monitor(bus, [StatsdAdapter(*server.getsockname())]).run(lambda: False)
        received: list[str] = []
        wanted = {
            "routemaster.events.queued:3|g|#subscriber:mailer",
            "routemaster.events.published.total:3|g|#topic:orders",
        }
        while not wanted <= set(received):
            datagram = server.recv(65536)
            assert len(datagram) <= 1500
            received += datagram.decode().splitlines()


def test_an_adapter_that_fails_does_not_stop_the_others(bus, capsys, caplog):
    class Broken:
        def send(self, samples):
            raise OSError("no route")

    Monitor(bus, [Broken(), PrintAdapter()]).run(lambda: False)
    assert "name=workers" in capsys.readouterr().out
    assert "cannot report adapter=Broken" in caplog.text

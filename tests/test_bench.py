"""The benchmark runs, and does not believe figures whose events are not all accounted for."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench import client, delivery, export, publish
from bench.calls import JSON, LINES, Call, body, request
from bench.load import Job, Void, drive
from bench.rig import BARE, PRODUCT, Rig, basic
from bench.scale import TINY
from bench.web import run
from routemaster.redis_server import find_server


@pytest.fixture(scope="module")
def rig():
    with Rig(find_server()) as rig:
        yield rig


def job(port: int) -> Job:
    return Job(port, connections=2, warm_s=0.01, seconds=0.05)


@pytest.mark.slow
def test_a_whole_run_ends_well_and_writes_its_figures(tmp_path, capfd):
    assert publish.main(["--tiny", "--json", str(tmp_path / "figures.json")]) == 0
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert all(figures[part] for part in ("singles", "bulks", "costs", "flatness", "goals"))
    shown = capfd.readouterr().out
    assert all(goal["name"] in shown for goal in figures["goals"])


@pytest.mark.slow
def test_delivering_is_measured_beside_the_bare_client(capfd):
    assert delivery.main(["--tiny"]) == 0
    shown = capfd.readouterr().out
    assert "of_bare" in shown and "an idle worker needs little" in shown


@pytest.mark.slow
def test_the_client_is_measured_beside_raw_http(capfd):
    assert client.main(["--tiny"]) == 0
    shown = capfd.readouterr().out
    assert "ready-made" in shown and "publish_many needs the same memory" in shown


@pytest.mark.slow
def test_the_export_is_measured_with_and_without(capfd):
    assert export.main(["--tiny"]) == 0
    shown = capfd.readouterr().out
    assert "without" in shown and "the export costs the bus little" in shown


def test_a_void_run_has_an_exit_status_of_its_own(monkeypatch, capsys):
    monkeypatch.setattr(publish, "TINY", replace(TINY, connections=0))
    assert publish.main(["--tiny"]) == 3
    assert "VOID: to_b_by_baa: nothing was accepted" in capsys.readouterr().out


@pytest.mark.parametrize("told", [0, 2])
def test_events_that_the_bus_did_not_count_or_counted_twice_make_a_run_void(rig, told):
    topic = rig.topic(1)
    with pytest.raises(Void, match="1 counted by the bus"), rig.audited(topic) as accepted:
        Call.publishing(rig.bus, topic, 1).run(rig.bus.link)
        accepted.append(told)


@pytest.mark.parametrize("kind", [JSON, LINES])
def test_every_answer_of_the_product_stands_for_a_stored_event(rig, kind):
    topic = rig.topic(1)
    with rig.web(PRODUCT, 1) as port:
        result = run(rig, topic, job(port), f"/topics/{topic}", 3, kind)
    queued = rig.bus.link.call("HGET", rig.bus.keys.event_gauges, f"{topic}-0")
    assert int(queued) == 3 * result.accepted


def test_the_bare_handler_stores_what_the_product_would(rig):
    topic = rig.topic(2)
    with rig.web(BARE, 1) as port:
        result = run(rig, topic, job(port), f"/{topic}/3", 3, JSON)
    queued = rig.bus.link.call("HVALS", rig.bus.keys.event_gauges)
    assert [int(count) for count in queued] == [3 * result.accepted] * 2


def test_a_refused_publish_ends_the_load(rig):
    topic = rig.topic(1)
    with rig.web(PRODUCT, 1) as port, pytest.raises(Void, match="not accepted: b'HTTP/1.1 401"):
        drive(job(port), request("Bearer nobody", f"/topics/{topic}", body(1, JSON), JSON))


def test_the_bare_handler_knows_its_clients(rig):
    topic = rig.topic(1)
    stranger = basic()[:-8] + "QUJDREVG"
    with rig.web(BARE, 1) as port, pytest.raises(Void, match="401"):
        drive(job(port), request(stranger, f"/{topic}/1", body(1, JSON), JSON))

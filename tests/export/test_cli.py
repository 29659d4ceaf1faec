"""`routemaster export`, as it is typed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from routemaster.cli.export import command
from routemaster.export.folder import Folder
from tests.export.drained import batches, once, tried


@pytest.fixture
def run(settings, monkeypatch, tmp_path):
    changed = replace(settings, export_url=str(tmp_path / "export"), export_retention_days=0)

    def runs(*words: str, **changes: object):
        given = replace(changed, **changes)
        monkeypatch.setattr("routemaster.cli.session.read_settings", lambda: given)
        return CliRunner().invoke(command, words)

    return runs


def test_export_compact_and_read(run, bus, tmp_path):
    for first in (0, 5):
        tried(bus, 5, first)
        assert json.loads(run("--json").stdout)["attempts"] == 5
    told = run("compact", "--dataset", "attempts", "--grace", "0")
    assert "10 rows of 2 files" in told.stdout
    [path] = run("files", "attempts").stdout.splitlines()
    assert "/day-" in path and Path(path).exists()
    assert batches(Folder.of(str(tmp_path / "export"))) == once(10)
    assert (tmp_path / "export" / "attempts" / "_manifest.json").exists()
    assert "nothing to compact" in run("compact").stdout


def test_retain(run, bus, tmp_path):
    tried(bus, 3)  # long ago
    run()
    assert "dropped" in run("retain", "--days", "9").stdout
    assert not list((tmp_path / "export" / "attempts").glob("date=*"))


def test_bad_files_are_named(run, bus, tmp_path):
    tried(bus, 3)
    run()
    [path] = run("files", "attempts").stdout.splitlines()
    Path(path).write_text("no")
    told = run("files", "attempts")
    assert told.stdout == "" and f"{path}: not Parquet" in told.stderr


def test_what_is_wrong_is_one_line(run, monkeypatch, tmp_path):
    assert "the export is off" in run(export_url=None).stderr
    (tmp_path / "file").touch()
    told = run(export_url=str(tmp_path / "file" / "x"))
    assert told.exit_code == 1 and told.stderr.startswith("Error: cannot export: ")
    monkeypatch.setattr("routemaster.bus.find_spec", lambda name: None)
    assert "pip install 'routemaster[export]'" in run().stderr

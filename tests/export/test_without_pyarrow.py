"""pyarrow is an extra: the bus runs without it, and says what to install."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from routemaster import checks
from routemaster.bus import is_exporting
from routemaster.jobs import intervals_ms

MODULES = "routemaster.web.__main__, routemaster.worker.__main__, routemaster.cli.export"


def test_neither_web_nor_worker_import_it():
    code = f"import sys, {MODULES}; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=50).returncode == 0


@pytest.fixture
def without(monkeypatch):
    monkeypatch.setattr("routemaster.bus.find_spec", lambda name: None)


def test_in_development_the_export_is_off_with_a_warning(without, make_bus, settings, caplog):
    bus = make_bus(settings)
    checks.wait_for_redis(bus)
    assert "pip install 'routemaster[export]'" in caplog.text
    assert not is_exporting(settings) and "export" not in intervals_ms(settings)


def test_in_production_somebody_asked_for_it(without, make_bus, settings, caplog):
    bus = make_bus(replace(settings, env="production"))
    with pytest.raises(SystemExit) as ended:
        checks.wait_for_redis(bus)
    assert ended.value.code == checks.MISCONFIGURED
    assert "pip install 'routemaster[export]'" in caplog.text


def test_the_part_that_reports_use_needs_neither_store_nor_web():
    code = (
        "import sys, routemaster.export.files, routemaster.export.writing;"
        "sys.exit(any(m.startswith(('routemaster.store', 'routemaster.web')) for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=50).returncode == 0

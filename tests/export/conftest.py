from __future__ import annotations

import pytest

from routemaster.export.folder import Folder
from tests.web.assembling import bus_maker


@pytest.fixture
def make_bus():
    with bus_maker() as make:
        yield make


@pytest.fixture
def bus(make_bus, settings):
    return make_bus(settings)


@pytest.fixture
def folder(tmp_path) -> Folder:
    return Folder.of(str(tmp_path / "export"))

from __future__ import annotations

import pytest

from routemaster.errors import SettingsError
from routemaster.metrics import adapters
from routemaster.metrics.print import PrintAdapter
from routemaster.metrics.statsd import StatsdAdapter
from routemaster.settings import Settings


def settings(**env: str) -> Settings:
    return Settings.from_env({"ROUTEMASTER_ROOT_KEY": "k", **env})


def test_none_by_default():
    assert adapters(settings()) == []


def test_as_many_as_are_named():
    found = adapters(settings(ROUTEMASTER_METRIC_ADAPTERS="statsd, print"))
    assert [type(adapter) for adapter in found] == [StatsdAdapter, PrintAdapter]


@pytest.mark.parametrize("text", ["graphite", "print,", "print,print", "none,print"])
def test_others_are_refused(text):
    with pytest.raises(SettingsError, match="ROUTEMASTER_METRIC_ADAPTERS must be none, or some of"):
        settings(ROUTEMASTER_METRIC_ADAPTERS=text)


@pytest.mark.parametrize(
    ("text", "address"),
    [("stats.internal:9125", ("stats.internal", 9125)), ("[::1]:8125", ("::1", 8125))],
)
def test_addresses(text, address):
    assert settings(ROUTEMASTER_STATSD_ADDRESS=text).statsd_address == address


@pytest.mark.parametrize("text", ["stats", "stats:", ":8125", "stats:0", "stats:x", "a b:1"])
def test_bad_addresses(text):
    with pytest.raises(SettingsError, match="ROUTEMASTER_STATSD_ADDRESS must be"):
        settings(ROUTEMASTER_STATSD_ADDRESS=text)

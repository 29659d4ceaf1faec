from __future__ import annotations

from dataclasses import replace

import pytest

from routemaster.clients import add_token, remove_token, seed
from routemaster.domain.token import masked
from routemaster.errors import InvalidInput
from tests.conftest import ROOT_KEY
from tests.web.assembling import bus_maker

CAROL, DAVE = "carol--0123456789abcdef", "dave--0123456789abcdef"


@pytest.fixture
def make_bus():
    with bus_maker() as make:
        yield make


@pytest.fixture
def bus(make_bus, settings):
    return make_bus(settings)


def known(bus) -> dict[str, str]:
    """Token ids with the name and the source of their client."""
    clients = bus.directory.fresh().clients.values()
    return {client.token_id: f"{client.name} {client.source}" for client in clients}


def test_declared_tokens_exist(bus):
    seed(bus, [CAROL, DAVE])
    assert known(bus) == {masked(CAROL): "carol environment", masked(DAVE): "dave environment"}


def test_seeding_again_changes_nothing(bus):
    seed(bus, [CAROL])
    version = bus.directory.fresh().version
    seed(bus, [CAROL])
    assert bus.directory.fresh().version == version


def test_what_is_no_longer_declared_goes_and_what_the_api_made_stays(bus):
    seed(bus, [CAROL])
    add_token(bus, "eve", "eve--0123456789abcdef")
    seed(bus, [DAVE])
    assert sorted(known(bus).values()) == ["dave environment", "eve api"]
    seed(bus, [])
    assert sorted(known(bus).values()) == ["eve api"]


def test_two_processes_that_decided_by_the_same_table(make_bus, bus, settings):
    # The other has read which tokens are missing, then this one adds them.
    other = make_bus(settings)
    stale = other.directory.fresh()
    seed(bus, [CAROL])
    other.directory.fresh = lambda: stale  # the race, frozen
    seed(other, [CAROL])
    assert known(bus) == {masked(CAROL): "carol environment"}


def test_a_declared_token_that_the_api_made_before_stays_the_apis(bus):
    add_token(bus, "carol", CAROL)
    seed(bus, [CAROL])
    seed(bus, [])
    assert known(bus) == {masked(CAROL): "carol api"}


def test_a_name_may_hold_single_hyphens(bus):
    seed(bus, ["a-b-c--secret--with--dashes"])
    assert list(known(bus).values()) == ["a-b-c environment"]


def test_a_token_is_nobodys_twice(bus):
    add_token(bus, "carol", CAROL)
    with pytest.raises(InvalidInput) as refused:
        add_token(bus, "dave", CAROL)
    assert refused.value.field == "token"
    assert CAROL not in str(refused.value)
    with pytest.raises(InvalidInput):
        add_token(bus, "carol", ROOT_KEY)


def test_removing_by_token_or_id_and_nothing_else(bus):
    add_token(bus, "carol", CAROL)
    add_token(bus, "dave", DAVE)
    for wrong in ("carol", "", "*", CAROL[:-1]):
        remove_token(bus, wrong)
    assert len(known(bus)) == 2
    remove_token(bus, CAROL)
    remove_token(bus, masked(DAVE))
    assert known(bus) == {}


def test_secrets_for_digest_are_kept_only_while_it_is_on(make_bus, bus, settings):
    add_token(bus, "carol", CAROL)
    add_token(make_bus(replace(settings, digest_auth=True)), "dave", DAVE)
    by_name = {c.name: c.digest_ha1 for c in bus.directory.fresh().clients.values()}
    assert by_name["carol"] == {}
    assert by_name["dave"].keys() == {"SHA-256", "MD5"}

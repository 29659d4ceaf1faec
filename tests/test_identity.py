from __future__ import annotations

import base64

import pytest

from routemaster.domain.token import digest
from routemaster.errors import Unauthenticated
from routemaster.identity import ROOT_IDENTITY, Authenticator, Credentials, Identity, user_of
from routemaster.store.table import Client, Table

ROOT_KEY = "root-key-0123456789"
TOKEN = "alice--0123456789abcdef"
TABLE = Table(clients={digest(TOKEN): Client("alice", "alice--****", "api", 0)})


@pytest.fixture
def authenticator():
    return Authenticator(ROOT_KEY, None)


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("header", [f"Bearer {TOKEN}", basic(f"{TOKEN}:x"), basic(TOKEN)])
def test_a_token_stands_for_its_client(authenticator, header):
    assert authenticator.identify(Credentials(header), TABLE) == Identity("alice")


@pytest.mark.parametrize("header", [f"Bearer {ROOT_KEY}", basic(f"{ROOT_KEY}:x")])
def test_the_root_key_needs_no_table(authenticator, header):
    assert authenticator.identify(Credentials(header), Table()) is ROOT_IDENTITY


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer x", "Basic", "Basic %%%", basic(":" + TOKEN), "Digest a=b"]
)
def test_everybody_else_is_refused(authenticator, header):
    with pytest.raises(Unauthenticated):
        authenticator.identify(Credentials(header), TABLE)


def test_the_digest_of_a_token_is_not_the_token(authenticator):
    # Who reads Redis must not be able to log in with what is there.
    with pytest.raises(Unauthenticated):
        authenticator.identify(Credentials(f"Bearer {digest(TOKEN)}"), TABLE)


def test_no_message_repeats_what_was_presented(authenticator):
    for header in ("Bearer hunter2", basic("hunter2:x"), "Basic hunter2"):
        with pytest.raises(Unauthenticated) as refused:
            authenticator.identify(Credentials(header), TABLE)
        assert "hunter2" not in str(refused.value)


def test_the_user_name_ends_at_the_first_colon():
    assert user_of(base64.b64encode(b"a:b:c").decode()) == "a"
    assert user_of(base64.b64encode(b"a").decode()) == "a"
    assert user_of(base64.b64encode("ä:x".encode()).decode()) == "ä"

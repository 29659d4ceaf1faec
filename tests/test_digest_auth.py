"""The algorithm against the RFC's own example; the rest in tests/web/test_auth.py."""

from __future__ import annotations

import pytest

from routemaster.digest_auth import NONCE_MS, DigestAuth, StaleNonce
from routemaster.errors import Unauthenticated
from tests.web.clocks import SetClock
from tests.web.digests import answer, parameters

# RFC 7616, 3.9.1.
RFC_HEADER = (
    'username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", '
    'algorithm={algorithm}, nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", nc=00000001, '
    'cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", qop=auth, response="{response}", '
    'opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
)
RFC_RESPONSES = {
    "MD5": "8ca523f5e9506fed4657c9700eebdbec",
    "SHA-256": "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
}


@pytest.fixture
def clock():
    return SetClock()


@pytest.fixture
def auth(clock):
    return DigestAuth("bus", "the-root-key", clock)


def claim_of(auth, user, password, algorithm="SHA-256", method="GET", uri="/topics"):
    [challenge] = [
        found for c in auth.challenges() if (found := parameters(c))["algorithm"] == algorithm
    ]
    header = answer(challenge, user, password, method, uri)
    return auth.parse(header.removeprefix("Digest "))


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
def test_the_example_of_the_rfc(monkeypatch, clock, algorithm):
    auth = DigestAuth("http-auth@example.org", "any", clock)
    monkeypatch.setattr(auth, "_made_ms", lambda _: clock.at_ms)  # the nonce is not ours
    header = RFC_HEADER.format(algorithm=algorithm, response=RFC_RESPONSES[algorithm])
    claim = auth.parse(header)
    secrets = auth.secrets_for("Mufasa", "Circle of Life")
    assert claim.user == "Mufasa"
    auth.verify(claim, [secrets], "GET", "/dir/index.html")
    with pytest.raises(Unauthenticated):
        auth.verify(claim, [secrets], "POST", "/dir/index.html")


@pytest.mark.parametrize("algorithm", ["MD5", "SHA-256"])
def test_one_of_several_secrets_is_enough(auth, algorithm):
    secrets = [auth.secrets_for("alice", token) for token in ("old", "new")]
    for password in ("old", "new"):
        claim = claim_of(auth, "alice", password, algorithm)
        auth.verify(claim, secrets, "GET", "/topics")
    with pytest.raises(Unauthenticated):
        auth.verify(claim_of(auth, "alice", "older", algorithm), secrets, "GET", "/topics")


def test_no_secret_fits_a_client_without_any(auth):
    with pytest.raises(Unauthenticated):
        auth.verify(claim_of(auth, "alice", ""), [], "GET", "/topics")


def test_another_process_with_the_same_root_key_knows_the_nonce(auth, clock):
    claim = claim_of(auth, "alice", "token")
    sibling = DigestAuth("bus", "the-root-key", clock)
    sibling.verify(claim, [sibling.secrets_for("alice", "token")], "GET", "/topics")
    stranger = DigestAuth("bus", "another-root-key", clock)
    with pytest.raises(Unauthenticated) as refused:
        stranger.verify(claim, [stranger.secrets_for("alice", "token")], "GET", "/topics")
    assert not isinstance(refused.value, StaleNonce)


def test_a_nonce_is_good_for_a_while(auth, clock):
    claim, secrets = claim_of(auth, "alice", "token"), [auth.secrets_for("alice", "token")]
    clock.at_ms += NONCE_MS
    auth.verify(claim, secrets, "GET", "/topics")
    clock.at_ms += 1
    with pytest.raises(StaleNonce):
        auth.verify(claim, secrets, "GET", "/topics")


def test_an_unknown_algorithm_is_refused(auth):
    [header] = [
        answer(parameters(c), "a", "b", "GET", "/") for c in auth.challenges() if "MD5" in c
    ]
    with pytest.raises(Unauthenticated):
        auth.parse(header.removeprefix("Digest ").replace("algorithm=MD5", "algorithm=SHA-1"))


def test_without_an_algorithm_it_is_md5(auth):
    [header] = [
        answer(parameters(c), "a", "b", "GET", "/") for c in auth.challenges() if "MD5" in c
    ]
    assert auth.parse(header.replace("algorithm=MD5, ", "")).algorithm == "MD5"


def test_neither_the_root_key_nor_a_token_is_in_a_challenge(auth):
    assert "the-root-key" not in "".join(auth.challenges())

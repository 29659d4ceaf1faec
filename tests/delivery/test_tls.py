"""Certificates that must not be taken, beside one that is."""

from __future__ import annotations

import ssl
import time
import warnings
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pycurl
import pytest
import trustme

from routemaster.clock import SystemClock
from routemaster.delivery.courier import Courier
from routemaster.delivery.outcome import Response
from tests.delivery.posting import courier, deliver, rules
from tests.zoo import OK, Visit, Zoo

HERE = "127.0.0.1"
DELIVERED = Response(status=200, excerpt=b"ok", received_bytes=2)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def believer(authority, tmp_path):
    """A courier that trusts our authority, as others trust those of their system."""
    bundle = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(bundle)

    class Believer(Courier):
        def _prepare(self, curl, transfer, message):
            super()._prepare(curl, transfer, message)
            curl.setopt(pycurl.CAINFO, str(bundle))

    with closing(Believer(rules(), SystemClock())) as made:
        yield made


def context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(made)
    return made


def test_a_certificate_that_holds(authority, believer):
    with Zoo(tls=context(authority.issue_cert(HERE))) as zoo:
        url = zoo.keep(OK)
        assert [deliver(believer, url), deliver(believer, url)] == [DELIVERED] * 2
        assert len(zoo.visits) == 1


def expired(authority: trustme.CA) -> trustme.LeafCert:
    now = datetime.now(UTC)
    return authority.issue_cert(
        HERE, not_before=now - timedelta(days=9), not_after=now - timedelta(days=1)
    )


def not_yet_valid(authority: trustme.CA) -> trustme.LeafCert:
    now = datetime.now(UTC)
    return authority.issue_cert(
        HERE, not_before=now + timedelta(days=1), not_after=now + timedelta(days=9)
    )


def of_another_host(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("other.example.com", "127.0.0.2")


def of_an_unknown_authority(authority: trustme.CA) -> trustme.LeafCert:
    return trustme.CA().issue_cert(HERE)


@pytest.mark.parametrize(
    "bad", [expired, not_yet_valid, of_another_host, of_an_unknown_authority],
    ids=lambda each: each.__name__,
)  # fmt: skip
def test_a_certificate_that_does_not_hold(authority, believer, bad):
    with Zoo(tls=context(bad(authority))) as zoo:
        assert deliver(believer, zoo.keep(OK)) == Response(error="tls")
        assert zoo.requests == []


def test_a_certificate_that_signed_itself(believer, tmp_path):
    own = trustme.CA()
    pem = tmp_path / "own.pem"
    own.private_key_pem.write_to_path(pem)
    own.cert_pem.write_to_path(pem, append=True)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(pem)
    with Zoo(tls=made) as zoo:
        assert deliver(believer, zoo.keep(OK)) == Response(error="tls")
        assert zoo.requests == []


def test_the_systems_authorities_are_asked_when_nothing_is_said(authority):
    with Zoo(tls=context(authority.issue_cert(HERE))) as zoo, courier() as made:
        assert deliver(made, zoo.keep(OK)) == Response(error="tls")


def test_unverified_when_the_operator_says_so():
    tls = context(of_another_host(trustme.CA()))
    with Zoo(tls=tls) as zoo, courier(ssl_verify=False) as made:
        assert deliver(made, zoo.keep(OK)) == DELIVERED


def test_tls_before_1_2_is_not_spoken(authority, believer):
    made = context(authority.issue_cert(HERE))
    made.set_ciphers("ALL:@SECLEVEL=0")  # or OpenSSL would not offer it at all
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        made.minimum_version = ssl.TLSVersion.TLSv1
        made.maximum_version = ssl.TLSVersion.TLSv1_1
    with Zoo(tls=made) as zoo:
        assert deliver(believer, zoo.keep(OK)) == Response(error="tls")


def test_plain_http_where_tls_was_promised(believer):
    def plain(visit: Visit) -> None:
        visit.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with Zoo(plain) as zoo:
        response = deliver(believer, zoo.url().replace("http:", "https:"))
        assert response == Response(error="tls")


def test_a_handshake_that_hangs():
    """It is part of connecting: the shorter of the two deadlines holds."""
    started_s = time.monotonic()
    with Zoo(Visit.hang) as zoo, courier(connect_timeout_s=0.3) as made:
        response = deliver(made, zoo.url().replace("http:", "https:"))
        assert response == Response(error="timeout")
    assert time.monotonic() - started_s < 20 * 0.3

import hashlib

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from routemaster.domain.token import digest, digest_ha1, masked, new_token, parse_token, same
from routemaster.errors import InvalidInput

# No clock decides here: the machine may be busy, and the first draw builds tables.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

ANY_TEXT = st.text(st.characters(exclude_categories=()))


def test_a_new_token_names_its_client_and_is_never_the_same():
    tokens = {new_token("shop-eu") for _ in range(50)}
    assert len(tokens) == 50
    assert all(token.startswith("shop-eu--") and len(token) == 9 + 43 for token in tokens)


def test_a_new_token_fits_a_basic_user_name_even_if_the_client_does_not():
    assert new_token("shop:eu").startswith("shop_eu--")
    parse_token(new_token("a:" * 32))


@pytest.mark.parametrize("token", ["x" * 16, "~" * 256, "service--0a1b2c3d4e"])
def test_tokens_of_the_callers_choice(token):
    assert parse_token(token) == token


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        b"x" * 16,
        "",
        "x" * 15,
        "x" * 257,
        "x" * 16 + "\n",
        "x" * 16 + "\x7f",
        "x" * 16 + "é",
        *("x" * 16 + mark for mark in " :/?#%"),
    ],
)
def test_what_is_no_token(value):
    with pytest.raises(InvalidInput) as caught:
        parse_token(value)
    assert caught.value.field == "token"


def test_digest_is_sha256():
    assert digest("é") == hashlib.sha256(b"\xc3\xa9").hexdigest()


@PATIENT
@given(ANY_TEXT, ANY_TEXT)
@example("\ud800", "\udfff")
def test_any_text_can_be_compared(a, b):
    assert same(a, b) == (a == b) == (digest(a) == digest(b))


def test_a_masked_token_shows_the_name_and_not_the_secret():
    token = new_token("shop-eu")
    assert masked(token) == "shop-eu--****" + digest(token)[:12]


@PATIENT
@given(ANY_TEXT)
def test_a_masked_token_is_plain_enough_for_a_url_and_tells_nothing(token):
    assert masked(token) == "token--****" + digest(token)[:12]


def test_masks_tell_tokens_of_one_client_apart():
    assert len({masked(new_token("shop")) for _ in range(50)}) == 50


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        # The example of RFC 7616, section 3.9.1.
        ("MD5", hashlib.md5(b"Mufasa:http-auth@example.org:Circle of Life").hexdigest()),
        ("SHA-256", hashlib.sha256(b"Mufasa:http-auth@example.org:Circle of Life").hexdigest()),
    ],
)
def test_ha1(algorithm, expected):
    assert digest_ha1("Mufasa", "http-auth@example.org", "Circle of Life", algorithm) == expected


def test_ha1_makes_the_responses_of_the_rfc():
    def response(algorithm, hash_):
        ha1 = digest_ha1("Mufasa", "http-auth@example.org", "Circle of Life", algorithm)
        ha2 = hash_(b"GET:/dir/index.html").hexdigest()
        nonce = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
        cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
        return hash_(f"{ha1}:{nonce}:00000001:{cnonce}:auth:{ha2}".encode()).hexdigest()

    assert response("MD5", hashlib.md5) == "8ca523f5e9506fed4657c9700eebdbec"
    assert (
        response("SHA-256", hashlib.sha256)
        == "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"
    )


def test_ha1_knows_two_algorithms():
    with pytest.raises(InvalidInput, match="algorithm"):
        digest_ha1("a", "b", "c", "SHA-512-256")

from ipaddress import IPv6Address, ip_network

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from routemaster.domain.callback import parse_callback
from routemaster.errors import InvalidInput

# No clock decides here: the machine may be busy, and the first draw builds tables.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

LOOPBACK = [ip_network("127.0.0.0/8"), ip_network("::1/128")]


def parse(value, allow_http=False, allowed=()):
    return parse_callback(value, allow_http=allow_http, allowed_networks=allowed)


@pytest.mark.parametrize(
    ("given_url", "stored"),
    [
        ("https://example.com", "https://example.com"),
        ("https://example.com/", "https://example.com/"),
        ("HTTPS://EXAMPLE.com/Path", "https://example.com/Path"),
        ("https://example.com./a", "https://example.com/a"),
        ("https://example.com:8443/a/b%20c;d=1/@x:y", "https://example.com:8443/a/b%20c;d=1/@x:y"),
        ("https://example.com:00443/", "https://example.com:443/"),
        ("https://my_host.example.com/", "https://my_host.example.com/"),
        ("https://bücher.example/ä".replace("ä", "a"), "https://xn--bcher-kva.example/a"),
        ("https://BÜCHER.example", "https://xn--bcher-kva.example"),
        ("https://example。com/", "https://example.com/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://134744072/", "https://8.8.8.8/"),
        ("https://010.0x8.8.8/", "https://8.8.8.8/"),
        ("https://[2606:4700:0:0::1111]:444/", "https://[2606:4700::1111]:444/"),
        ("https://[::ffff:8.8.8.8]/", f"https://[{IPv6Address('::ffff:808:808')}]/"),
        ("https://1.example.com/", "https://1.example.com/"),
        ("https://" + ".".join(["a" * 63] * 3 + ["b" * 61]), None),
        ("https://a/" + "x" * 1014, None),
    ],
)
def test_accepted(given_url, stored):
    assert parse(given_url) == (stored or given_url)


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        b"https://example.com",
        "",
        "example.com",
        "//example.com/",
        "http://example.com/",
        "ftp://example.com/",
        "javascript:alert(1)",
        "https:/example.com",
        "https:example.com",
        "https://",
        "https:///path",
        "https://:443/",
        "https://example.com:/",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:443443443/",
        "https://example.com:4x/",
        "https://example.com:٤٤٣/",
        "https://example.com:-1/",
        "https://user@example.com/",
        "https://user:secret@example.com/",
        "https://@example.com/",
        "https://example.com?a=1",
        "https://example.com/?",
        "https://example.com/#",
        "https://example.com#a",
        "https://example.com\\@evil.com/",
        "https://example.com/a\\b",
        "https://example.com/a b",
        " https://example.com/",
        "https://example.com/\n",
        "https://example.com/\r\nX: y",
        "https://exa\tmple.com/",
        "https://example.com/\x00",
        "https://example.com/\x7f",
        "https://example.com/\x85",
        "https://example.com/\u2028",
        "https://example.com/é",
        "https://exa%6dple.com/",
        "https://example..com/",
        "https://.example.com/",
        "https://example.com../",
        "https://-example.com/",
        "https://example-.com/",
        "https://exam!ple.com/",
        "https://a,b/",
        "https://" + "a" * 64 + ".com/",
        "https://" + ".".join(["a" * 63] * 4),
        "https://" + "é" * 60 + ".com/",
        "https://" + "é." * 60 + "com/",  # 123 characters, 483 in ASCII
        "https://é.com/" + "x" * 1010,  # 1024 characters, more in ASCII
        "https://\ud800.com/",
        "https://℀.com/",  # NFKC makes it a/c
        "https://example.com＠evil.com/",
        "https://[::1/",
        "https://::1/",
        "https://[]/",
        "https://[example.com]/",
        "https://[8.8.8.8]/",
        "https://[fe80::1%25eth0]/",
        "https://[2606:4700::1%eth0]/",
        "https://[2606:4700::1]a/",
        "https://1.2.3.4.5/",
        "https://256.1.1.1/",
        "https://8.8.8.256/",
        "https://08.8.8.8/",
        "https://0x8g.8.8.8/",
        "https://8_8.8.8.8/",
        "https://0x0x8.8.8.8/",
        "https://4294967296/",
        "https://example.1/",
        "https://a/" + "x" * 1015,
        "https://" + "a" * 2000,
    ],
)
def test_refused(value):
    with pytest.raises(InvalidInput) as caught:
        parse(value)
    assert caught.value.field == "callback"


# Every way we know to write an address of this machine, or of our own network.
DISGUISED = [
    ("127.0.0.1", "loopback"),
    ("127.0.0.1.", "loopback"),
    ("127.1", "loopback"),
    ("127.0.1", "loopback"),
    ("2130706433", "loopback"),
    ("017700000001", "loopback"),
    ("0x7f000001", "loopback"),
    ("0x7F.1", "loopback"),
    ("0x7f.0x0.0x0.0x1", "loopback"),
    ("0177.0.0.1", "loopback"),
    ("00000177.0.0.1", "loopback"),
    ("127.0.0x1", "loopback"),
    ("１２７.0.0.1", "loopback"),
    ("127。0。0。1", "loopback"),
    ("①②⑦.⓪.⓪.①", "loopback"),
    ("0", "unspecified"),
    ("0x", "unspecified"),
    ("0.0.0.0", "unspecified"),
    ("10.1", "private"),
    ("172.16.1", "private"),
    ("192.168.257", "private"),
    ("3232235521", "private"),
    ("2852039166", "metadata"),
    ("0xa9fea9fe", "metadata"),
    ("169.254.43518", "metadata"),
    ("100.100.100.200", "metadata"),
    ("4294967295", "broadcast"),
    ("[::1]", "loopback"),
    ("[0:0:0:0:0:0:0:1]", "loopback"),
    ("[::]", "unspecified"),
    ("[::ffff:127.0.0.1]", "loopback"),
    ("[::FFFF:7f00:1]", "loopback"),
    ("[::127.0.0.1]", "loopback"),
    ("[::ffff:0:127.0.0.1]", "loopback"),
    ("[64:ff9b::7f00:1]", "loopback"),
    ("[64:ff9b::127.0.0.1]", "loopback"),
    ("[64:ff9b:1::7f00:1]", "reserved"),
    ("[2002:7f00:1::]", "loopback"),
    ("[2002:c0a8:101::1]", "private"),
    ("[2001:0:7f00:1::f7f7:f7f7]", "loopback"),
    ("[2001:0:808:808::80ff:fffe]", "loopback"),
    ("[fd00:ec2::254]", "metadata"),
    ("[fe80::1]", "link-local"),
    ("[fec0::1]", "private"),
    ("[ff02::1]", "multicast"),
    ("localhost", "loopback"),
    ("LOCALHOST", "loopback"),
    ("localhost.", "loopback"),
    ("ｌocalhost", "loopback"),
    ("a.b.localhost", "loopback"),
    ("a.localhost.", "loopback"),
]


@pytest.mark.parametrize(("host", "reason"), DISGUISED)
@pytest.mark.parametrize("rest", ["", ":8443/x"])
def test_disguised_addresses_are_refused(host, reason, rest):
    with pytest.raises(InvalidInput, match=f"must not point to a {reason} address"):
        parse(f"https://{host}{rest}")


@pytest.mark.parametrize("host", [host for host, reason in DISGUISED if reason == "loopback"])
def test_disguised_addresses_are_accepted_where_the_network_is_allowed(host):
    parse(f"https://{host}/", allowed=LOOPBACK)


@pytest.mark.parametrize(
    ("host", "stored"),
    [
        ("127.1", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("[0::1]", "[::1]"),
        ("LocalHost.", "localhost"),
    ],
)
def test_what_is_stored_is_what_was_judged(host, stored):
    url = parse(f"http://{host}:80/x", allow_http=True, allowed=LOOPBACK)
    assert url == f"http://{stored}:80/x"


@pytest.mark.parametrize("network", ["127.0.0.0/8", "::1/128"])
def test_localhost_is_open_when_one_of_its_families_is(network):
    assert parse("https://localhost/", allowed=[ip_network(network)])


def test_names_that_only_look_like_localhost_are_left_to_the_dial():
    assert parse("https://notlocalhost/")
    assert parse("https://localhost.example.com/")


def test_http_only_where_allowed():
    assert parse("HTTP://example.com/", allow_http=True) == "http://example.com/"
    with pytest.raises(InvalidInput, match="must start with https://"):
        parse("http://example.com/")


PIECES = st.sampled_from(list("a1.0x:[]@/-_%。１ß") + ["127", "::", "xn--", "localhost", "é"])


@PATIENT
@given(st.text(st.characters(exclude_categories=())) | st.lists(PIECES).map("".join))
@example("\u0378")  # unassigned
@example("xn--a")
@example("xn--\xe9")
@example("ß.a")
def test_nothing_but_invalid_input_comes_out_and_what_does_is_stable(rest):
    try:
        stored = parse("https://" + rest)
    except InvalidInput:
        return
    assert stored.isascii()
    assert parse(stored) == stored

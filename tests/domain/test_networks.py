from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routemaster.domain.networks import refused

# No clock decides here: the machine may be busy, and the first draw builds tables.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

REFUSED = [
    ("0.0.0.0", "unspecified"),
    ("0.255.255.255", "unspecified"),
    ("10.0.0.0", "private"),
    ("10.255.255.255", "private"),
    ("100.64.0.0", "shared"),
    ("100.127.255.255", "shared"),
    ("100.100.100.200", "metadata"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.255", "loopback"),
    ("168.63.129.16", "metadata"),
    ("169.254.0.1", "link-local"),
    ("169.254.169.254", "metadata"),
    ("169.254.170.2", "metadata"),
    ("172.16.0.0", "private"),
    ("172.31.255.255", "private"),
    ("192.0.0.1", "reserved"),
    ("192.0.0.192", "metadata"),
    ("192.0.2.1", "documentation"),
    ("192.88.99.1", "reserved"),
    ("192.168.0.0", "private"),
    ("192.168.255.255", "private"),
    ("198.18.0.0", "benchmarking"),
    ("198.19.255.255", "benchmarking"),
    ("198.51.100.1", "documentation"),
    ("203.0.113.1", "documentation"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.255", "multicast"),
    ("240.0.0.0", "reserved"),
    ("255.255.255.254", "reserved"),
    ("255.255.255.255", "broadcast"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("fd00:ec2::254", "metadata"),
    ("fd20:ce::254", "metadata"),
    ("fc00::1", "private"),
    ("fdff::1", "private"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("febf::1", "link-local"),
    ("fec0::1", "private"),
    ("ff02::1", "multicast"),
    ("100::1", "reserved"),
    ("2001:2::1", "reserved"),
    ("2001:10::1", "reserved"),
    ("2001:20::1", "reserved"),
    ("2001:db8::1", "documentation"),
    ("3fff::1", "documentation"),
    ("4000::1", "reserved"),
    ("5f00::1", "reserved"),
    ("64:ff9b:1::7f00:1", "reserved"),
    ("64:ff9b::1:7f00:1", "reserved"),
    ("1::1", "reserved"),
    # IPv4 inside IPv6
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:a9fe:a9fe", "metadata"),
    ("::127.0.0.1", "loopback"),
    ("::2", "unspecified"),
    ("::ffff:0:127.0.0.1", "loopback"),
    ("64:ff9b::7f00:1", "loopback"),
    ("64:ff9b::10.1.2.3", "private"),
    ("2002:7f00:1::", "loopback"),
    ("2002:a9fe:a9fe::1", "metadata"),
    ("2001:0:7f00:1::f7f7:f7f7", "loopback"),  # Teredo, its server
    ("2001:0:808:808::80ff:fffe", "loopback"),  # Teredo, its client 127.0.0.1, inverted
    ("garbage", "not an address"),
    ("127.1", "not an address"),
    ("", "not an address"),
]

OPEN = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450::1",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
    "2001:0:808:808::f7f7:f7f7",
]


@pytest.mark.parametrize(("address", "reason"), REFUSED)
def test_refused(address, reason):
    assert refused(address, ()) == reason


@pytest.mark.parametrize("address", OPEN)
def test_open(address):
    assert refused(address, ()) is None
    assert refused(ip_address(address), ()) is None


@pytest.mark.parametrize(
    ("network", "opened", "still_refused"),
    [
        ("127.0.0.0/8", ["127.0.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"], ["10.0.0.1", "::1"]),
        ("::1/128", ["::1"], ["127.0.0.1", "::", "::2", "::127.0.0.1"]),
        ("10.1.0.0/16", ["10.1.2.3", "::10.1.2.3"], ["10.2.0.0", "::ffff:10.2.0.0"]),
        ("fd00::/8", ["fd00::1", "fd00:ec2::254"], ["fc00::1", "fe80::1"]),
        ("64:ff9b::/96", ["64:ff9b::10.0.0.1"], ["10.0.0.1", "::ffff:10.0.0.1"]),
        ("0.0.0.0/0", ["127.0.0.1", "::ffff:10.0.0.1"], ["::1", "fd00::1"]),
        ("10.0.0.0/8", ["2001:0:a00:1::f5ff:fffe"], ["2001:0:a00:1::80ff:fffe"]),
    ],
)
def test_allowed_networks_open_what_they_contain(network, opened, still_refused):
    allowed = [ip_network("198.51.100.0/24"), ip_network(network)]
    assert [
        address for address in opened + still_refused if not refused(address, allowed)
    ] == opened


@PATIENT
@given(st.ip_addresses(v=4))
def test_wrapping_an_address_in_ipv6_changes_nothing(inner):
    value = int(inner)
    wrapped = [
        value + (0xFFFF << 32),
        value + (0xFFFF << 48),
        value + (0x64_FF9B << 96),
        (0x2002 << 112) + (value << 80),
        (0x2001 << 112) + (0x0808_0808 << 64) + (value ^ 0xFFFF_FFFF),
    ]
    reasons = {refused(IPv6Address(number), ()) for number in wrapped}
    assert reasons == {refused(inner, ())}


@PATIENT
@given(st.ip_addresses())
def test_we_are_never_laxer_than_the_standard_library(address):
    # What holds an IPv4 address (6to4, NAT64, ...) is judged by that one, and tested above.
    if isinstance(address, IPv4Address) and not address.is_global:
        assert refused(address, ())
    if address.is_loopback or address.is_link_local or address.is_multicast:
        assert refused(address, ())


@PATIENT
@given(st.text())
def test_no_text_raises(text):
    refused(text, ())

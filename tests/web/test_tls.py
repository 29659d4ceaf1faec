from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from urllib.parse import unquote_to_bytes

import pytest

from tests.web.calls import EVENT, dump

PROXY = {"REMOTE_ADDR": "10.1.2.3"}
STRANGER = {"REMOTE_ADDR": "203.0.113.9"}


@pytest.fixture
def bus(make_bus, settings):
    trusted = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
    return make_bus(replace(settings, force_ssl=True, trusted_proxies=trusted))


def secure(caller, path="/topics", proto="https", peer=PROXY):
    return caller.get(path, headers={"X-Forwarded-Proto": proto}, environ_base=peer)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT"])
def test_plain_http_is_sent_on_with_its_path_and_query(alice, method):
    response = alice.call(method, "/topics/orders?a=1&b=%20x", base_url="http://bus.example:8080")
    # 308 and not 301: the method and the body have to stay.
    assert response.status_code == 308
    assert response.headers["Location"] == "https://bus.example:8080/topics/orders?a=1&b=%20x"
    assert "Strict-Transport-Security" not in response.headers


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/topics", "/topics"),
        ("/topics/a%20b", "/topics/a%20b"),
        ("/topics/%0d%0aSet-Cookie:%20a=b", "/topics/%0D%0ASet-Cookie:%20a=b"),
        ("/topics/%E2%82%AC", "/topics/%E2%82%AC"),
        ("/%ff%00", "/%FF%00"),
        ("/topics/a%3Fb%23c", "/topics/a%3Fb%23c"),
        ("//evil.example/x", "//evil.example/x"),
    ],
)
def test_the_location_is_a_proper_url_of_the_same_host(app, path, location):
    # As a server hands it over; the test client would tidy it up first.
    decoded = unquote_to_bytes(path).decode("latin-1")
    environ = {"PATH_INFO": decoded, "HTTP_HOST": "bus.example"}
    response = app.test_client().get("/", environ_overrides=environ)
    assert response.status_code == 308
    assert response.headers["Location"] == "https://bus.example" + location


@pytest.mark.parametrize("host", ["evil/", "a b", "a\\b", "", "user@host", "h:99999999"])
def test_a_host_that_is_none_is_refused(nobody, host):
    response = nobody.get("/topics", environ_overrides={"HTTP_HOST": host})
    assert response.status_code == 400
    assert "Location" not in response.headers
    assert response.get_json()["detail"]["field"] == "Host"


@pytest.mark.parametrize("host", ["bus.example", "bus.example:8443", "[::1]:80", "127.0.0.1"])
def test_hosts_that_are_sent_on(nobody, host):
    response = nobody.get("/topics", environ_overrides={"HTTP_HOST": host})
    assert response.headers["Location"] == f"https://{host}/topics"


def test_nothing_is_done_before_it_is_sent_on(alice, redis_server):
    before = dump(redis_server)
    assert alice.publish("orders", EVENT).status_code == 308
    assert alice.follow("orders").status_code == 308
    assert dump(redis_server) == before


def test_a_trusted_proxy_is_believed(alice):
    response = secure(alice)
    assert response.status_code == 200
    assert response.headers["Strict-Transport-Security"] == "max-age=31536000"
    for peer in ("fd00::1", "::ffff:10.1.2.3"):  # the second: IPv4 on a socket for both families
        assert secure(alice, peer={"REMOTE_ADDR": peer}).status_code == 200


@pytest.mark.parametrize("peer", ["203.0.113.9", "", "unix:", "::ffff:203.0.113.9", "127.0.0.1"])
def test_a_stranger_is_not(alice, peer):
    assert secure(alice, peer={"REMOTE_ADDR": peer}).status_code == 308


@pytest.mark.parametrize("proto", ["http", "", "https, http", "httpss", "ws"])
def test_the_proxys_own_word_counts_and_it_is_the_last(alice, proto):
    assert secure(alice, proto=proto).status_code == 308


def test_what_a_client_told_the_proxy_does_not(alice):
    assert secure(alice, proto="http, HTTPS").status_code == 200


def test_a_trusted_proxy_that_says_nothing_spoke_http(alice):
    assert alice.get("/topics", environ_base=PROXY).status_code == 308


def test_our_own_tls(alice):
    response = alice.get("/topics", base_url="https://bus.example", environ_base=STRANGER)
    assert response.status_code == 200
    assert "Strict-Transport-Security" in response.headers


@pytest.mark.parametrize("path", ["/health", "/health/ping"])
def test_health_is_asked_in_plain_http(nobody, path):
    response = nobody.get(path, environ_base=STRANGER)
    assert response.status_code == 200
    assert "Strict-Transport-Security" not in response.headers


def test_errors_over_https_say_so_too(nobody):
    response = nobody.get("/topics", base_url="https://bus.example")
    assert response.status_code == 401
    assert "Strict-Transport-Security" in response.headers


def test_off(make_bus, settings):
    from routemaster.web import create_app

    http = create_app(make_bus(settings)).test_client()
    response = http.get("/health")
    assert response.status_code == 200
    assert "Strict-Transport-Security" not in response.headers

"""What only shows with a real server between client and application."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
import requests
from requests.auth import HTTPDigestAuth

from routemaster.settings import Settings
from tests.busses import give_token, token_of
from tests.conftest import ROOT_KEY
from tests.integration.processes import REQUEST_TIMEOUT_S, WebProcess
from tests.web.calls import EVENT, SUBSCRIPTION, basic, dump

GOOD = json.dumps(EVENT).encode()


@pytest.fixture(scope="module")
def shared_redis(shared_servers):
    from routemaster.redis_server import find_servers

    return shared_servers(find_servers()[0])


@pytest.fixture(scope="module")
def shared_web(shared_redis):
    process = WebProcess(
        shared_redis.url,
        ROUTEMASTER_DIGEST_AUTH="true",
        ROUTEMASTER_MAX_BODY="4096",
        ROUTEMASTER_WEB_PROCESSES="1",
        ROUTEMASTER_WEB_THREADS="4",
    ).start()
    yield process
    process.close()


@pytest.fixture
def web(redis_server, shared_web):
    return shared_web


@pytest.fixture
def alice(make_bus, redis_server, web) -> str:
    env = {"ROUTEMASTER_ROOT_KEY": ROOT_KEY, "ROUTEMASTER_REDIS_URL": redis_server.url}
    settings = Settings.from_env({**env, "ROUTEMASTER_DIGEST_AUTH": "true"})
    token = give_token(make_bus(settings), "alice")
    body = {**SUBSCRIPTION, "topics": ["*"]}
    assert web.call("POST", "/subscription", token, json=body).status_code == 204
    return token


def queued(web) -> int:
    [row] = web.call("GET", "/subscribers", ROOT_KEY).json()
    return int(row["events"]["queued"])


def exchange(web, *parts: bytes, ends_early: bool = False) -> tuple[int, bytes]:
    """Sends raw bytes, and reads until the server hangs up: the status and the body."""
    with socket.create_connection(("127.0.0.1", web.port), REQUEST_TIMEOUT_S) as connection:
        for part in parts:
            connection.sendall(part)
        if ends_early:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), body


def head(token: str, *lines: str, kind: str = "application/json") -> bytes:
    fixed = [
        "POST /topics/orders HTTP/1.1", "Host: bus", "Connection: close",
        f"Content-Type: {kind}", f"Authorization: {basic(token)}",
    ]  # fmt: skip
    return "\r\n".join([*fixed, *lines, "", ""]).encode()


CHUNKED = "Transfer-Encoding: chunked"


class TestBodies:
    def test_chunked(self, web, alice):
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in GOOD) + b"0\r\n\r\n"
        assert exchange(web, head(alice, CHUNKED), chunks)[0] == 204
        assert queued(web) == 1

    def test_chunked_over_the_limit(self, web, alice, redis_server):
        before = dump(redis_server)
        response = web.call(
            "POST", "/topics/orders", alice, data=iter([b"[", b" " * 5000, GOOD, b"]"]),
            headers={"Content-Type": "application/json"},
        )  # fmt: skip
        assert response.status_code == 413
        assert response.json()["detail"]["field"] == "body"
        assert dump(redis_server) == before

    @pytest.mark.parametrize(
        "chunks",
        [
            b"zz\r\n" + GOOD,
            b"-1\r\n\r\n",
            b"5\r\nabcdefgh\r\n0\r\n\r\n",
            b"%x\r\n%s\r\n" % (len(GOOD), GOOD),  # no last chunk
            b"fff\r\n" + GOOD,
        ],
    )
    def test_broken_chunks(self, web, alice, redis_server, chunks):
        before = dump(redis_server)
        status, body = exchange(web, head(alice, CHUNKED), chunks, ends_early=True)
        assert (status, json.loads(body)["detail"]["field"]) == (400, "body")
        assert dump(redis_server) == before

    @pytest.mark.parametrize("kind", ["application/json", "application/x-ndjson"])
    def test_a_connection_that_breaks_off_stores_nothing(self, web, alice, redis_server, kind):
        # Whole events came, but not all: all or nothing.
        before = dump(redis_server)
        sent = GOOD + b"\n"
        lines = head(alice, f"Content-Length: {2 * len(sent)}", kind=kind)
        status, body = exchange(web, lines, sent, ends_early=True)
        assert (status, json.loads(body)["detail"]["field"]) == (400, "body")
        assert dump(redis_server) == before

    def test_a_body_over_the_limit_is_not_waited_for(self, web, alice):
        status, body = exchange(web, head(alice, "Content-Length: 5000"))
        assert status == 413
        assert json.loads(body)["detail"]["field"] == "body"

    def test_no_length_is_no_body(self, web, alice):
        status, body = exchange(web, head(alice))
        assert (status, json.loads(body)["detail"]["field"]) == (400, "body")


class TestConnections:
    def test_stay_open_over_refusals(self, web, alice):
        with requests.Session() as session:
            session.auth = (alice, "")
            cases: list[tuple[Any, int]] = [
                (EVENT, 204),
                ({}, 400),
                (EVENT, 204),
                ([], 400),
                (EVENT, 204),
            ]
            for body, status in cases:
                response = session.post(
                    f"{web.url}/topics/orders", json=body, timeout=REQUEST_TIMEOUT_S
                )
                assert response.status_code == status
                assert response.headers.get("Connection") != "close"
        assert queued(web) == 3


def numbered(n: int) -> Any:
    return {**EVENT, "timestamp": n}


class TestDigest:
    def test_the_requests_library(self, web, alice):
        auth = HTTPDigestAuth("alice", alice)
        for n in range(3):  # the later ones re-use the nonce, with a higher count
            response = requests.post(
                f"{web.url}/topics/orders", json=numbered(n), auth=auth,
                timeout=REQUEST_TIMEOUT_S,
            )  # fmt: skip
            assert response.status_code == 204
        assert queued(web) == 3
        url = f"{web.url}/topics?a=b%20c"
        assert requests.get(url, auth=auth, timeout=REQUEST_TIMEOUT_S).status_code == 200

    def test_root(self, web, alice):
        auth = HTTPDigestAuth("root", ROOT_KEY)
        response = requests.get(f"{web.url}/api_tokens", auth=auth, timeout=REQUEST_TIMEOUT_S)
        assert [row["name"] for row in response.json()] == ["alice"]

    def test_a_wrong_password(self, web, alice):
        auth = HTTPDigestAuth("alice", "wrong")
        response = requests.get(f"{web.url}/topics", auth=auth, timeout=REQUEST_TIMEOUT_S)
        assert response.status_code == 401


def test_weird_requests_are_answered_in_json(web, alice):
    for line in ("GET /%ff%00 HTTP/1.1", "BREW /topics HTTP/1.1", "GET /topics/../x HTTP/1.1"):
        request = f"{line}\r\nHost: bus\r\nConnection: close\r\nAuthorization: \xff\xe9\r\n\r\n"
        status, body = exchange(web, request.encode("latin-1"))
        assert status in (401, 404, 405)
        assert json.loads(body)["error"]


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nAuthorization: Basic s3cr3t\x00\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nBad Name: s3cr3t\r\n\r\n", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 9000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 200 + b"\r\n", 431),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: zip\r\n\r\n", 501),
    ],
)
def test_what_is_not_http_is_answered_in_json(web, request_head, status):
    answered, body = exchange(web, request_head)
    assert (answered, list(json.loads(body))) == (status, ["error"])
    assert "s3cr3t" not in web.log() + body.decode()


def test_the_log_holds_no_secret_and_no_bug(web, alice):
    made = web.call("POST", "/api_tokens", ROOT_KEY, json={"name": "carol"}).json()["token"]
    web.call("DELETE", f"/api_tokens/{made}", ROOT_KEY)
    web.publish(made, "orders", EVENT)
    web.publish(alice, "orders", {"secret": made})
    log = web.log()
    assert not [s for s in (made, token_of("alice"), ROOT_KEY, "secret-uuid") if s in log]
    assert "a bug" not in log
    assert "Traceback" not in log

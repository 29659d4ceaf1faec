from __future__ import annotations

import base64
from dataclasses import replace

import pytest

from routemaster.digest_auth import NONCE_MS
from routemaster.web import create_app
from tests.busses import give_token, token_of
from tests.conftest import ROOT_KEY
from tests.web.calls import EVENT, Caller, basic
from tests.web.clocks import SetClock
from tests.web.digests import answer, digest_challenges


def status(caller, header: str | bytes) -> int:
    return int(caller.get("/topics", headers={"Authorization": header}).status_code)


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


class TestBasicAndBearer:
    def test_every_spelling(self, nobody, alice):
        token = token_of("alice")
        for header in (
            basic(token), basic(token, ""), basic(token, "a:b"), f"basic {b64(token.encode())}",
            f"Bearer {token}", f"bearer  {token} ", f"BEARER {ROOT_KEY}", basic(ROOT_KEY),
        ):  # fmt: skip
            assert status(nobody, header) == 200, header

    @pytest.mark.parametrize(
        "header",
        [
            "", "Basic", "Basic ", "Basic !!!", "Basic a", "Basic " + b64(b"\xff\xfe:"),
            "Basic " + b64(b""), "Basic " + b64(b":x"), "Bearer", "Bearer ", "Bearer \xe9\xff",
            "\xe9", "Basic \xe9", "Negotiate abc", "Digest", "Token x", "Basic " + "A" * 4000,
        ],
    )  # fmt: skip
    def test_unreadable_credentials(self, nobody, header):
        assert status(nobody, header) == 401

    def test_near_misses(self, nobody, alice):
        token = token_of("alice")
        for wrong in (token[:-1], token + "x", token.upper(), "alice", "", f"x{token}"):
            assert status(nobody, basic(wrong)) == 401
            assert status(nobody, f"Bearer {wrong}") == 401
        assert status(nobody, basic("alice", token)) == 401

    def test_challenges_without_digest(self, nobody):
        response = nobody.get("/topics")
        assert response.headers.getlist("WWW-Authenticate") == [
            'Basic realm="routemaster", charset="UTF-8"', 'Bearer realm="routemaster"',
        ]  # fmt: skip
        assert nobody.get("/topics", headers={"Authorization": "Digest a=b"}).status_code == 401

    def test_a_revoked_token_publishes_nothing_more(self, alice, root):
        assert alice.publish("orders", EVENT).status_code == 204
        root.delete(f"/api_tokens/{alice.token}")
        assert alice.publish("orders", EVENT).status_code == 401

    def test_a_token_made_by_another_process_works_at_once(self, make_bus, settings, nobody):
        assert status(nobody, basic("x")) == 401  # it has loaded the table
        give_token(make_bus(settings), "late")
        late = Caller(nobody.http, token_of("late"))
        assert late.publish("orders", EVENT).status_code == 204


class TestDigest:
    @pytest.fixture
    def clock(self):
        return SetClock()

    @pytest.fixture
    def bus(self, make_bus, settings, clock):
        return make_bus(replace(settings, digest_auth=True), clock)

    @pytest.fixture
    def challenges(self, nobody):
        return digest_challenges(nobody.get("/topics"))

    def get(self, nobody, header, path="/topics"):
        return nobody.get(path, headers={"Authorization": header})

    def test_challenges_offer_the_better_algorithm_first(self, challenges):
        assert list(challenges) == ["SHA-256", "MD5"]
        for challenge in challenges.values():
            assert (challenge["realm"], challenge["qop"]) == ("routemaster", "auth")
            assert "stale" not in challenge

    @pytest.mark.parametrize("algorithm", ["SHA-256", "MD5"])
    def test_a_client_and_root(self, nobody, alice, challenges, algorithm):
        for user, password in (("alice", token_of("alice")), ("root", ROOT_KEY)):
            header = answer(challenges[algorithm], user, password, "GET", "/topics")
            assert self.get(nobody, header).status_code == 200
        header = answer(challenges[algorithm], "root", ROOT_KEY, "GET", "/api_tokens")
        assert self.get(nobody, header, "/api_tokens").status_code == 200

    @pytest.mark.parametrize("algorithm", ["SHA-256", "MD5"])
    def test_publishing(self, nobody, alice, challenges, algorithm):
        header = answer(challenges[algorithm], "alice", token_of("alice"), "POST", "/topics/orders")
        response = nobody.publish("orders", EVENT, headers={"Authorization": header})
        assert response.status_code == 204

    def test_the_query_string_is_part_of_what_is_signed(self, nobody, alice, challenges):
        header = answer(challenges["MD5"], "alice", token_of("alice"), "GET", "/topics?a=%20b")
        assert self.get(nobody, header, "/topics?a=%20b").status_code == 200
        assert self.get(nobody, header, "/topics").status_code == 401

    def test_any_live_token_of_the_client(self, nobody, root, challenges):
        tokens = [root.post("/api_tokens", {"name": "eve"}).get_json()["token"] for _ in range(2)]
        headers = [answer(challenges["MD5"], "eve", token, "GET", "/topics") for token in tokens]
        assert [self.get(nobody, h).status_code for h in headers] == [200, 200]
        root.delete(f"/api_tokens/{tokens[0]}")
        assert [self.get(nobody, h).status_code for h in headers] == [401, 200]

    def test_wrong_passwords_users_paths_and_methods(self, nobody, alice, challenges):
        challenge, token = challenges["SHA-256"], token_of("alice")
        wrong = [
            answer(challenge, "alice", token + "x", "GET", "/topics"),
            answer(challenge, "mallory", token, "GET", "/topics"),
            answer(challenge, "root", token, "GET", "/topics"),
            answer(challenge, "alice", token, "POST", "/topics"),
            answer(challenge, "alice", token, "GET", "/subscribers"),
            answer(challenge, "alice", token, "GET", "/topics", said_uri="/subscribers"),
        ]
        assert [self.get(nobody, header).status_code for header in wrong] == [401] * len(wrong)

    def test_a_replay_opens_no_other_path(self, nobody, root, challenges):
        header = answer(challenges["MD5"], "root", ROOT_KEY, "GET", "/topics")
        assert self.get(nobody, header).status_code == 200
        assert self.get(nobody, header, "/api_tokens").status_code == 401

    @pytest.mark.parametrize(
        "nonce", ["", "x", "1-x", "-", "99999999999999999999-a", "²-a", "1700000000000-" + "0" * 32]
    )
    def test_nonces_that_we_did_not_make(self, nobody, alice, challenges, nonce):
        forged = {**challenges["MD5"], "nonce": nonce}
        header = answer(forged, "alice", token_of("alice"), "GET", "/topics")
        assert self.get(nobody, header).status_code == 401

    def test_a_stale_nonce_is_told_apart_from_a_wrong_password(
        self, nobody, alice, clock, challenges
    ):
        good = answer(challenges["MD5"], "alice", token_of("alice"), "GET", "/topics")
        bad = answer(challenges["MD5"], "alice", "wrong", "GET", "/topics")
        clock.at_ms += NONCE_MS
        assert self.get(nobody, good).status_code == 200
        clock.at_ms += 1
        response = self.get(nobody, good)
        assert response.status_code == 401
        renewed = digest_challenges(response)
        assert {each["stale"] for each in renewed.values()} == {"true"}
        again = answer(renewed["MD5"], "alice", token_of("alice"), "GET", "/topics")
        assert self.get(nobody, again).status_code == 200
        # RFC 7616 3.3: stale only when the digest itself is right.
        response = self.get(nobody, bad)
        assert response.status_code == 401
        assert not [each for each in digest_challenges(response).values() if "stale" in each]

    def test_a_nonce_of_a_clock_that_is_ahead_a_little(self, nobody, alice, clock, challenges):
        # Several web processes on several machines make nonces.
        header = answer(challenges["MD5"], "alice", token_of("alice"), "GET", "/topics")
        clock.at_ms -= 50
        assert self.get(nobody, header).status_code == 200

    def test_tokens_made_while_it_was_off_do_not_work_with_it(
        self, make_bus, settings, nobody, challenges
    ):
        give_token(make_bus(settings), "early")
        header = answer(challenges["MD5"], "early", token_of("early"), "GET", "/topics")
        assert self.get(nobody, header).status_code == 401
        assert Caller(nobody.http, token_of("early")).get("/topics").status_code == 200

    def test_off_means_no_challenge_and_no_entry(self, make_bus, settings, alice, challenges):
        off = Caller(create_app(make_bus(settings)).test_client())
        header = answer(challenges["MD5"], "alice", token_of("alice"), "GET", "/topics")
        response = self.get(off, header)
        assert response.status_code == 401
        assert digest_challenges(response) == {}

    @pytest.mark.parametrize(
        "cut", ["username", "realm", "nonce", "uri", "response", "nc", "cnonce", "qop"]
    )
    def test_incomplete_credentials(self, nobody, alice, challenges, cut):
        header = answer(challenges["MD5"], "alice", token_of("alice"), "GET", "/topics")
        response = self.get(nobody, header.replace(f"{cut}=", "other="))
        assert response.status_code == 401

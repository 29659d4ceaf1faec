from __future__ import annotations

import re

from tests.busses import token_of
from tests.web.calls import EVENT, Caller, dump, stored_text

CHOSEN = "a-token-of-my-own-choice"


def create(root, name: str, **fields: object) -> str:
    response = root.post("/api_tokens", {"name": name, **fields})
    assert response.status_code == 201
    answer = response.get_json()
    assert answer.keys() == {"name", "token"} and answer["name"] == name
    token: str = answer["token"]
    return token


def works(root, token: str) -> bool:
    return Caller(root.http, token).get("/topics").status_code == 200


def test_there_are_none_at_first(root):
    response = root.get("/api_tokens")
    assert (response.status_code, response.get_data()) == (204, b"")


def test_a_made_token_works(root):
    token = create(root, "carol")
    assert re.fullmatch(r"carol--[A-Za-z0-9_-]{43}", token)
    assert works(root, token)
    assert create(root, "carol") != token


def test_a_name_with_a_colon_gets_a_token_that_basic_can_carry(root):
    token = create(root, "team:carol")
    assert ":" not in token
    assert works(root, token)
    assert root.get("/api_tokens").get_json()[0]["name"] == "team:carol"


def test_listings_show_names_and_masked_tokens_in_order(root):
    tokens = [create(root, name) for name in ("zoe", "carol", "carol")]
    tokens.append(create(root, "carol", token=CHOSEN))
    response = root.get("/api_tokens")
    rows = response.get_json()
    assert [row["name"] for row in rows] == ["carol", "carol", "carol", "zoe"]
    assert all(re.fullmatch(r"(carol|zoe|token)--\*{4}[0-9a-f]{12}", r["token"]) for r in rows)
    assert len({row["token"] for row in rows}) == 4
    shown = response.get_data(as_text=True)
    assert not [token for token in tokens if token.rpartition("--")[2] in shown]


def test_a_chosen_token_works_once(root):
    assert create(root, "carol", token=CHOSEN) == CHOSEN
    assert works(root, CHOSEN)
    again = root.post("/api_tokens", {"name": "dave", "token": CHOSEN})
    assert again.status_code == 400
    assert again.get_json()["detail"]["field"] == "token"
    assert [row["name"] for row in root.get("/api_tokens").get_json()] == ["carol"]


def test_several_tokens_of_a_client_are_one_client(root):
    old, new = create(root, "carol"), create(root, "carol")
    assert Caller(root.http, old).publish("orders", EVENT).status_code == 204
    assert Caller(root.http, new).publish("orders", EVENT).status_code == 204
    root.delete(f"/api_tokens/{old}")
    assert not works(root, old)
    assert Caller(root.http, new).publish("orders", EVENT).status_code == 204


def test_deleting_by_the_token_and_by_the_listed_id(root):
    for how in ("token", "id"):
        token, other = create(root, "carol"), create(root, "dave")
        [listed] = [r["token"] for r in root.get("/api_tokens").get_json() if r["name"] == "carol"]
        response = root.delete(f"/api_tokens/{token if how == 'token' else listed}")
        assert response.status_code == 204
        assert (works(root, token), works(root, other)) == (False, True)


def test_deleting_is_always_204_and_takes_no_other_token(root, redis_server):
    token = create(root, "carol")
    before = dump(redis_server)
    for unknown in ("unknown", "carol", "carol--****", "*", token[:-1], token + "x", "%ff", "%0A"):
        assert root.delete(f"/api_tokens/{unknown}").status_code == 204
    assert root.delete(f"/api_tokens/{root.token}").status_code == 204
    assert dump(redis_server) == before


def test_tokens_are_nowhere_in_redis(root, redis_server, alice):
    tokens = [create(root, "carol"), create(root, "dave", token=CHOSEN), token_of("alice")]
    for token in tokens:
        Caller(root.http, token).publish("topic_of_" + "abc"[tokens.index(token)], EVENT)
        Caller(root.http, token).follow("orders")
    stored = stored_text(redis_server)
    assert b"carol" in stored  # we do look at what is there
    for token in tokens:
        assert token.encode() not in stored
        assert token.partition("--")[2].encode() not in stored or "--" not in token
    assert root.token.encode() not in stored

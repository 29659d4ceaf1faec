from __future__ import annotations

import base64
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook

from routemaster.domain.signature import PREFIX, SECRET_BYTES, key_of, new_secret, signatures

# No clock decides here: the machine may be busy.
PATIENT = settings(deadline=None)

KEYS = st.binary(min_size=1, max_size=64)


def secret_of(key: bytes) -> str:
    return PREFIX + base64.b64encode(key).decode()


def test_the_example_of_the_standard():
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    signed = signatures([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signed == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_new_secret_is_random_and_of_the_standards_form():
    one, two = new_secret(), new_secret()
    assert one != two
    assert one.startswith("whsec_")
    assert len(key_of(one)) == SECRET_BYTES


@PATIENT
@given(KEYS, st.text("abcdef0123456789-_", min_size=1), st.dictionaries(st.text(), st.integers()))
def test_the_standards_own_library_verifies(key, message_id, content):
    body = json.dumps(content).encode()
    seconds = int(time.time())  # the library compares with the real time
    headers = {
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": signatures([secret_of(key)], message_id, seconds, body),
    }
    assert Webhook(secret_of(key)).verify(body, headers) == content


@PATIENT
@given(st.lists(KEYS, max_size=4), st.binary(max_size=200))
def test_each_secret_signs_by_itself_and_in_order(keys, body):
    secrets = [secret_of(key) for key in keys]
    alone = [signatures([secret], "id", 1, body) for secret in secrets]
    assert signatures(secrets, "id", 1, body) == " ".join(alone)


@PATIENT
@given(st.binary(max_size=50), st.binary(max_size=50))
def test_another_body_id_time_or_secret_is_another_signature(body, other):
    secret = secret_of(b"key")
    signed = signatures([secret], "id", 1, body)
    assert signed != signatures([secret], "di", 1, body)
    assert signed != signatures([secret], "id", 2, body)
    assert signed != signatures([secret_of(b"yek")], "id", 1, body)
    assert (signed == signatures([secret], "id", 1, other)) == (body == other)


@pytest.mark.parametrize("secret", ["whsec_AAAA", "AAAA"])
def test_the_prefix_is_no_part_of_the_key(secret):
    assert key_of(secret) == b"\0\0\0"

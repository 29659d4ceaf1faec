import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routemaster.domain.job import Job, deliver
from routemaster.errors import InvalidInput

# No clock decides here: the machine may be busy, and the first draw builds tables.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

ARGS = st.lists(st.text() | st.integers(-(2**63), 2**64 - 1)).map(tuple)


def test_the_bytes_of_a_delivery():
    assert deliver("shop", "f:eu").dump() == b"\x92\xa7deliver\x92\xa4shop\xa4f:eu"


@PATIENT
@given(st.text(), ARGS)
def test_a_job_survives_its_bytes(name, args):
    job = Job(name, args)
    assert Job.load(job.dump()) == job


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "deliver",
        [],
        ["deliver"],
        ["deliver", "shop"],
        ["deliver", ["shop"], 1],
        [1, []],
        [b"deliver", []],
        ["deliver", [None]],
        ["deliver", [True]],
        ["deliver", [1.5]],
        ["deliver", [["shop"]]],
        {"deliver": 1, "shop": 2},
    ],
)
def test_what_is_no_job(value):
    with pytest.raises(InvalidInput):
        Job.load(msgpack.packb(value))


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\x92",
        b"\x92\xa7deliver",
        b"\x92\xa1\xff\x90",  # not UTF-8
        b"\x92\xa1a\x90\x00",  # something after it
        b"\x91" * 100_000,
        b"\x92\xa1a\x91\x81\x90\x01",  # a list as a key
        b"\x92\xa1a\x91\xd6\xff\xff\xff\xff\xff",  # a timestamp
        b"\x92\xd9\x01a\x90",  # a job, spelled longer than needed
        b"\xdf\xff\xff\xff\xff",
    ],
)
def test_garbage_is_refused(packed):
    with pytest.raises(InvalidInput):
        Job.load(packed)


@PATIENT
@given(st.binary(max_size=64))
def test_nothing_but_invalid_input_comes_out(packed):
    try:
        job = Job.load(packed)
    except InvalidInput:
        return
    assert job.dump() == packed

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routemaster.domain.lane import lane_id, lane_of, split_lane_id

# No clock decides here: the machine may be busy, and the first draw builds tables.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_a_facet_is_its_own_lane_whatever_the_concurrency():
    assert lane_of("https://a/1", "0", 1) == "f:0"
    assert lane_of("https://a/1", "eu|1", 8) == "f:eu|1"


def test_one_lane_without_concurrency():
    assert {lane_of(f"https://a/{n}", None, 1) for n in range(50)} == {"0"}


def test_concurrency_spreads_resources_over_that_many_lanes():
    assert {lane_of(f"https://a/{n}", None, 4) for n in range(100)} == {"0", "1", "2", "3"}


def test_the_lane_of_a_resource_is_the_same_in_every_process():
    # The published check value of CRC-32: another hash would reorder what is under way while
    # old and new processes run side by side.
    assert lane_of("123456789", None, 97) == str(0xCBF43926 % 97)


@PATIENT
@given(st.from_regex(r"[a-z0-9:_-]{1,64}", fullmatch=True), st.text())
def test_a_lane_id_splits_into_what_it_was_made_of(subscriber, lane):
    assert split_lane_id(lane_id(subscriber, lane)) == (subscriber, lane)

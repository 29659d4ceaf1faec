from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routemaster.delivery.outcome import (
    LEAST_WAIT_MS,
    MOST_WAIT_MS,
    Outcome,
    Response,
    Verdict,
    judge,
    parse_retry_after,
)

NOW = datetime(2026, 11, 18, 12, 0, 0, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
# No clock decides here: the machine may be busy.
PATIENT = settings(deadline=None)

DATES = [
    "Wed, 18 Nov 2026 12:01:00 GMT",
    "Wednesday, 18-Nov-26 12:01:00 GMT",
    "Wed Nov 18 12:01:00 2026",
    "18 Nov 2026 12:01:00 +0000",
    "18 Nov 2026 12:01:00 -0000",
    "Wed, 18 Nov 2026 14:01:00 +0200",
]


@pytest.fixture
def elsewhere(monkeypatch):
    """A machine whose own time is not GMT."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "EST5")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize("text", DATES)
def test_a_date_is_the_time_until_then(text, elsewhere):
    assert parse_retry_after(text, NOW_MS) == 60_000


@PATIENT
@given(st.integers(-(10**6), 10**6))
def test_a_date_is_kept_within_bounds(seconds):
    text = format_datetime(NOW + timedelta(seconds=seconds), usegmt=True)
    expected = max(LEAST_WAIT_MS, min(MOST_WAIT_MS, seconds * 1000))
    assert parse_retry_after(text, NOW_MS) == expected


@PATIENT
@given(st.integers(0, 10**40))
def test_seconds_are_kept_within_bounds(seconds):
    expected = max(LEAST_WAIT_MS, min(MOST_WAIT_MS, seconds * 1000))
    assert parse_retry_after(f" {seconds} ", NOW_MS) == expected


PARTS = st.sampled_from(
    'Mon, 1 0 99 Nov 2026 9999 0000 12:00:00 25:61:61 : - + +0000 -0000 GMT , -1 x ( ) "'.split()
)


@PATIENT
@given(st.text(max_size=60) | st.lists(PARTS, max_size=8).map(" ".join))
def test_any_text_is_a_wait_within_bounds_or_none(text):
    wait_ms = parse_retry_after(text, NOW_MS)
    assert wait_ms is None or LEAST_WAIT_MS <= wait_ms <= MOST_WAIT_MS


@pytest.mark.parametrize(
    "text", ["", " ", "-1", "+1", "1.5", "1e3", "0x10", "\u0663", "\u00b2", "soon"]
)
def test_what_is_neither_seconds_nor_a_date(text):
    assert parse_retry_after(text, NOW_MS) is None


@PATIENT
@given(st.integers(100, 599), st.sampled_from(["", "7", "x"]))
def test_what_a_status_means(status, retry_after):
    judged = judge(Response(status=status, retry_after=retry_after), NOW_MS)
    error = f"http_{status}"
    if 200 <= status <= 299:
        assert judged == Outcome(Verdict.DELIVERED)
    elif status == 410:
        assert judged == Outcome(Verdict.GONE, error)
    elif status in (429, 503) and retry_after == "7":
        assert judged == Outcome(Verdict.THROTTLED, error, 7_000)
    else:
        error = "redirect" if 300 <= status <= 399 else error
        assert judged == Outcome(Verdict.FAILED, error)


@pytest.mark.parametrize("error, named", [("dns", "dns"), ("", "network")])
def test_without_an_answer_the_error_is_named(error, named):
    assert judge(Response(error=error), NOW_MS) == Outcome(Verdict.FAILED, named)

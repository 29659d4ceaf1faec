"""From rows to lines: gaps stay gaps, what stands for many minutes is spread over them."""

from __future__ import annotations

import pytest

from routemaster.store.series import MINUTE_MS, Flow, Minute
from routemaster.web.dashboard import formats
from routemaster.web.dashboard.charts import (
    WINDOWS,
    Frame,
    area,
    chart,
    nice_top,
    path,
    window_named,
)

NOW = 30_000_000 * MINUTE_MS + 1234
LAST = 30_000_000
HOUR, SIX, DAY = WINDOWS


def row(minute: int, added: int = 0, span: int = 1, *gauges: int) -> Minute:
    return Minute(minute, span, Flow(added=added), gauges)


def rates(frame: Frame, *rows: Minute) -> list[float | None]:
    return frame.rates(rows, lambda r: r.flow.added)


def test_the_last_point_is_now():
    found = rates(Frame(HOUR, NOW), row(LAST, 120))
    assert found[-1] == 2
    assert set(found[:-1]) == {None}


def test_a_point_of_many_minutes_is_their_mean_and_ends_at_a_round_time():
    frame = Frame(SIX, NOW)
    assert all(ms % (SIX.step * MINUTE_MS) == 0 for ms in frame.times_ms)
    end = frame.times_ms[-2] // MINUTE_MS - 1
    found = rates(frame, row(end - 1, 60), row(end, 180))
    assert found[-2] == 2


def test_a_row_that_stands_for_many_minutes_is_spread_over_them():
    found = rates(Frame(HOUR, NOW), row(LAST, 600, span=10))
    assert found[-10:] == [1.0] * 10
    assert found[-11] is None


def test_rows_from_before_the_window_are_left_out():
    assert set(rates(Frame(HOUR, NOW), row(LAST - 61, 5), row(LAST + 9, 5))) == {None}


def test_a_gauge_holds_over_a_missed_minute_and_not_over_an_hour():
    frame = Frame(HOUR, NOW)
    assert frame.highest([row(LAST, 0, 3, 7)], 0)[-4:] == [None, 7, 7, 7]
    assert frame.highest([row(LAST, 0, 50, 7)], 0)[-2:] == [None, 7]
    assert set(frame.highest([row(LAST)], 0)) == {None}  # a row without that gauge


@pytest.mark.parametrize("window", WINDOWS)
def test_labels_are_the_same_time_apart(window):
    frame = Frame(window, NOW)
    made = chart("c", "C", frame, [("n", "a", [1.0] * window.points)], formats.count)
    apart = {b - a for a, b in zip(made.labels_ms, made.labels_ms[1:], strict=False)}
    assert apart == {window.minutes * MINUTE_MS // 4}


@pytest.mark.parametrize(
    ("values", "top"),
    [([], 4), ([3], 4), ([5], 8), ([41], 80), ([99], 100), ([101], 200), ([1e9 + 1], 2e9)],
)
def test_scales_end_at_round_numbers(values, top):
    assert nice_top(values, least=4) == top


def test_scales_of_bytes_end_at_powers_of_two():
    mib = 1024**2
    assert nice_top([3 * mib], 4 * mib, 1024) == 4 * mib
    assert nice_top([900 * mib], 4 * mib, 1024) == 1024 * mib


def test_a_gap_breaks_the_line_and_a_lone_point_is_a_dot():
    assert path([0, 4, None, 2], 4) == "M0.0 100.0 L333.3 0.0 M1000.0 50.0h0.1"
    assert area([None, 4, 4], 4) == "M500.0 100 L500.0 0.0 L1000.0 0.0 L1000.0 100Z"
    assert path([None, None], 4) == ""


def test_an_unknown_window_is_an_hour():
    assert window_named("<b>") is window_named("1h") is HOUR


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (formats.rate(None), "–"), (formats.rate(0), "0"), (formats.rate(0.034), "0.03"),
        (formats.rate(12.34), "12.3"), (formats.rate(12345.6), "12,346"),
        (formats.percent(1), "100 %"), (formats.percent(0.99999), "99.9 %"),
        (formats.percent(0), "0.0 %"), (formats.duration(0), "0 ms"),
        (formats.duration(2340), "2.3 s"), (formats.duration(59_999), "59 s"),
        (formats.duration(3_599_000), "59 min 59 s"), (formats.duration(90_000_000), "1 d 1 h"),
        (formats.age(0), "< 1 s"), (formats.size(1023), "1023 B"), (formats.size(1024), "1.0 KiB"),
        (formats.size(5 * 1024**3), "5.00 GiB"), (formats.count(1234567), "1,234,567"),
        (formats.moment(None), "–"), (formats.moment(10**18), "1970-01-01 00:00:00 UTC"),
    ],
)  # fmt: skip
def test_how_numbers_read(shown, text):
    assert shown == text

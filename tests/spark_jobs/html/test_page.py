from __future__ import annotations

import re
from datetime import datetime
from html.parser import HTMLParser

import pytest

from spark_jobs.html import words
from spark_jobs.html.bars import Bar, bar_chart
from spark_jobs.html.heat import HeatRow, heat_map
from spark_jobs.html.lines import Line, Mark, line_chart
from spark_jobs.html.markup import tag
from spark_jobs.html.page import BAD, GOOD, Block, Figure, Finding, Section, page
from spark_jobs.html.scales import Scale, decades, nice_ticks, time_ticks
from spark_jobs.html.tables import Cell, Column, left_out, table
from spark_jobs.html.timelines import Timeline, spark_line, timelines

HOSTILE = "<script>alert('x')</script>\"&\x00"
HOUR_MS = 3_600_000
VOID = {"meta", "path", "rect", "line"}


class Reader(HTMLParser):
    """Every tag closed in order, every attribute and text as a browser understands them."""

    def __init__(self, text):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def everything(text):
    times = [n * HOUR_MS for n in range(48)]
    mark = Mark(0, HOUR_MS, text)
    blocks = [
        line_chart(text, times, [Line(text, [None, *range(46), None], 1)], marks=[mark]),
        heat_map(text, times, [HeatRow(text, [0, 5] * 24, {1: text})], ["none", text]),
        bar_chart(text, [Bar(text, 3, text)]),
        timelines(text, 0, times[-1], [Timeline(text, [(0, 100), (HOUR_MS, 0)], [mark], text)]),
        table(text, [Column(text, False, text)], [[Cell(text, text)], [text]], text),
        spark_line(text, [1, 2, None]),
    ]
    return Section(
        "all", text, text, [Figure(text, text)], [Finding(BAD, text)],
        [Block(text, text, block) for block in blocks],
    )  # fmt: skip


def test_every_text_is_escaped_wherever_it_is_shown():
    text = page(HOSTILE, HOSTILE, [everything(HOSTILE), everything(HOSTILE)])
    read = Reader(text)
    assert read.tags.count("script") == 1
    assert "\x00" not in text
    shown = HOSTILE.replace("\x00", "\ufffd")
    assert shown in read.texts
    assert ("aria-label", shown) in read.attributes


def test_a_page_needs_nothing_from_outside_and_may_load_nothing():
    text = page("Report", "a week", [everything("x")])
    names = {name for name, _ in Reader(text).attributes}
    assert not names & {"src", "onclick", "onload", "xlink:href", "style"}
    assert not re.search(r"https?:|//\w|@import|url\(", text)
    assert any("default-src 'none'" in (value or "") for _, value in Reader(text).attributes)


def test_one_report_has_no_navigation_and_several_share_their_findings():
    bad, good = Finding(BAD, "broken down"), Finding(GOOD, "all well")
    one = Section("a", "A", "about a", findings=[good, bad])
    other = Section("b", "B", "about b", findings=[Finding(BAD, "worse off", weight=2)])
    assert "<nav" not in page("R", "p", [one])
    text = page("R", "p", [one, other])
    assert 'href="#a"' in text and 'href="#b"' in text
    assert text.index("worse off") < text.index("broken down") < text.index("all well")
    assert text.count("broken down") == 1


def test_tables_and_pictures_speak_to_who_cannot_see_them():
    text = page("Report", "a week", [everything("x")])
    read = Reader(text)
    assert read.tags.count("svg") == text.count('role="img"')
    assert '<th scope="col"' in text and '<th scope="row"' in text
    assert "<caption>" in text and '<html lang="en">' in text


@pytest.mark.parametrize(
    "nothing",
    [
        line_chart("x", [], []),
        line_chart("x", [1], [Line("a", [None])]),
        heat_map("x", [], [], []),
        bar_chart("x", [Bar("a", 0)]),
        timelines("x", 0, 1, []),
        table("x", [Column("a")], []),
    ],
)
def test_without_data_it_says_so(nothing):
    assert "None." in nothing or "Nothing to draw." in nothing


def test_a_line_breaks_where_nothing_is_known():
    drawn = line_chart("x", [0, 1, 2, 3, 4], [Line("a", [1.0, 2.0, None, 3.0, 4.0])])
    assert drawn.count('class="line s1"') == 2


def test_equal_neighbours_of_a_heat_map_are_one_shape():
    drawn = heat_map("x", [n * HOUR_MS for n in range(1000)], [HeatRow("a", [0] * 1000)], ["none"])
    assert len(drawn) < 3000


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (12_400, "12,400"), (1_234_567, "1.23M"), (99_999.5, "99,999.5"), (None, "\u2013")],
)
def test_counts(value, said):
    assert words.count(value) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.25, "0.2 s"), (59, "59 s"), (75, "1 min 15 s"), (4500, "1 h 15 min"), (86_400, "1 d")],
)
def test_durations(seconds, said):
    assert words.duration(seconds) == said


def test_a_share_is_never_rounded_to_all_or_nothing():
    assert words.percent(0.999999) == "99.99%"
    assert words.percent(0.0000001) == "0.01%"
    assert (words.percent(1), words.percent(0)) == ("100%", "0%")


def test_a_span_names_the_day_again_only_when_it_is_another():
    at = datetime(2026, 11, 13, 3, 10)
    assert words.span(at, at.replace(hour=4, minute=25)) == "from Fri 13 Nov 03:10 to 04:25"
    later = at.replace(day=14)
    assert words.span(at, later) == "from Fri 13 Nov 03:10 to Sat 14 Nov 03:10"


def test_names_are_listed_as_one_would_say_them():
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.listed(["a", "b", "c", "d"]) == "a, b, c and 1 more"


@pytest.mark.parametrize("high", [0, 0.03, 1, 7, 99, 100, 12_345, 9e12])
def test_ticks_reach_the_highest_value_in_few_steps(high):
    ticks = nice_ticks(high)
    assert ticks[0] == 0 and ticks[-1] >= high and len(ticks) <= 7


def test_scales_keep_within_the_picture():
    up = Scale(1, 1000, 100, 0, is_log=True)
    assert [round(up(value)) for value in (0, 1, 10, 1000, 9999)] == [100, 100, 67, 0, 0]
    assert decades(3, 250) == [1, 10, 100, 1000]


def test_ticks_of_time_are_whole_days_of_utc():
    ticks = time_ticks(5 * HOUR_MS, 14 * 24 * HOUR_MS, 8)
    assert 4 <= len(ticks) <= 8
    assert all(at % (24 * HOUR_MS) == 0 for at, _ in ticks)


def test_what_is_left_out_is_said():
    assert left_out(10, 10, "subscribers") == ""
    assert left_out(50, 200, "subscribers") == "The first 50 of 200 subscribers; 150 are left out."


def test_attributes_without_value_are_left_out():
    assert tag("rect", x=1.04, y=2.0, width=None) == '<rect x="1" y="2"/>'

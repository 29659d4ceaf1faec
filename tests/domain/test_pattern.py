import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routemaster.domain.pattern import Pattern, parse_pattern
from routemaster.errors import InvalidInput

# No clock decides here: the machine may be busy, and the first draw builds tables.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize(
    ("text", "plain", "hits", "misses"),
    [
        ("orders", True, ["orders"], ["order", "orders_", "xorders"]),
        ("email_*", False, ["email_", "email_sent", "email__"], ["email", "xemail_a"]),
        ("*_sent", False, ["_sent", "email_sent"], ["email_sent_", "sent"]),
        ("*", False, ["a", "orders"], []),
        ("order?", False, ["orders", "order_"], ["order", "orderss"]),
        ("a*b?c", False, ["abxc", "axxbxc"], ["abc", "abxcd"]),
        ("/orders|items/", False, ["orders", "items"], ["orders_x", "xitems", "orderss"]),
        ("/email_.+/", False, ["email_x"], ["email_", "an_email_x"]),
        ("/^a$/", False, ["a"], ["aa"]),
        ("/(?i)A/", False, ["a"], ["b"]),
        ("///", False, [], ["a"]),
    ],
)
def test_forms(text, plain, hits, misses):
    pattern = parse_pattern(text, "topics")
    assert (pattern.text, pattern.is_plain) == (text, plain)
    assert [name for name in hits + misses if pattern.matches(name)] == hits


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (None, "1 to 128"),
        (7, "1 to 128"),
        ("", "1 to 128"),
        ("/" + "a" * 127 + "/", "1 to 128"),
        ("a" * 65, "1 to 64"),
        ("Orders", "a-z"),
        ("orders\n", "a-z"),
        ("/", "a-z"),
        ("//", "a-z"),
        ("/orders", "a-z"),
        ("orders/", "a-z"),
        ("Email_*", "glob"),
        ("[ab]*", "glob"),
        ("a*\n", "glob"),
        ("é*", "glob"),
        ("/é/", "ASCII"),
        ("/a\n/", "ASCII"),
        ("/\ud800/", "ASCII"),
        ("/(a/", r"missing \)"),
        ("/(?=a)/", "invalid perl operator"),
        (r"/(a)\1/", "invalid escape"),
        ("/a**/", "bad repetition"),
        ("/a{1001}/", "repetition"),
    ],
)
def test_what_is_no_pattern(value, rule):
    with pytest.raises(InvalidInput, match=rule) as caught:
        parse_pattern(value, "topics")
    assert caught.value.field == "topics"


def test_a_regular_expression_cannot_grow_without_bound():
    with pytest.raises(InvalidInput, match="pattern too large"):
        parse_pattern(r"/\pL{100}/", "topics")  # fits the default of 8 MB


def test_an_evil_regular_expression_is_no_trouble():
    # A backtracking engine needs 2**64 steps here, so it would run into the test's time-out.
    assert not parse_pattern("/(a*)*(a|a)*(a?){30}b/", "topics").matches("a" * 64)


def test_nothing_is_written_to_stderr(capfd):
    with pytest.raises(InvalidInput):
        parse_pattern("/(unclosed/", "topics")
    parse_pattern("/closed/", "topics").matches("a")
    assert capfd.readouterr() == ("", "")


def test_patterns_with_one_text_are_one():
    assert len({parse_pattern("a*", "topics"), parse_pattern("a*", "topics"), Pattern("b")}) == 2


@PATIENT
@given(st.text(st.characters(exclude_categories=()), max_size=140) | st.from_regex(r"/.{1,60}/"))
def test_nothing_but_invalid_input_comes_out(text):
    try:
        parse_pattern(text, "topics").matches("orders")
    except InvalidInput:
        pass

from __future__ import annotations

import logging

import pytest

from routemaster import log


def line(message: str, *args: object, exc_info=None) -> str:
    record = logging.LogRecord("n", logging.INFO, "f.py", 1, message, args, exc_info)
    record.created = 0.123
    return log.KeyValueFormatter("web").format(record)


def test_a_line():
    assert line("delivered events=%d", 3) == (
        "time=1970-01-01T00:00:00.123Z level=info process=web delivered events=3"
    )


@pytest.mark.parametrize("char", ["\n", "\r", "\x1b", "\x00", "\x85", "\u2028", "\u202e", "\udc80"])
def test_what_clients_send_cannot_leave_its_line(char):
    shown = line("topic=%s", f"a{char}b")
    assert char not in shown and shown.splitlines() == [shown]


def test_a_traceback_can_be_read_but_not_forged():
    try:
        raise ValueError("a\ntime=forged")
    except ValueError as error:
        shown = line("failed", exc_info=(type(error), error, error.__traceback__))
    first, *rest = shown.splitlines()
    assert first.endswith("failed")
    assert rest and all(row.startswith("  | ") for row in rest)

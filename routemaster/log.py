"""One line per outcome, `key=value`; its words are an interface, operators and tests grep them."""

from __future__ import annotations

import logging
import sys
import time


def escape(text: str) -> str:
    """Nothing that a client sends can begin a new line or drive the terminal of who reads it."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape_char(c) for c in text)


def _escape_char(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


class KeyValueFormatter(logging.Formatter):
    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        fields = [
            f"time={_utc(record.created)}",
            f"level={record.levelname.lower()}",
            f"process={self._process}",
        ]
        if record.threadName not in (None, "MainThread"):
            fields.append(f"thread={escape(str(record.threadName))}")
        fields.append(escape(record.getMessage()))
        return " ".join(fields) + self._traceback(record)

    def _traceback(self, record: logging.LogRecord) -> str:
        if not record.exc_info:
            return ""
        # The text of an exception may come from outside too. The mark keeps its lines from being
        # taken for ours, and still lets a person read the traceback.
        lines = self.formatException(record.exc_info).split("\n")
        return "".join(f"\n  | {escape(line)}" for line in lines)


def _utc(seconds: float) -> str:
    millis = int(seconds * 1000)
    whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(millis // 1000))
    return f"{whole}.{millis % 1000:03d}Z"


def configure(level: str, process: str) -> None:
    # stderr, because Python never fails to encode there (backslashreplace), whatever the locale.
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(KeyValueFormatter(process))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())

"""Which topics a subscription means: a name, a glob (`email_*`), or a `/regular expression/`.

RE2, because strangers write these: its time is linear and its memory bounded, come what may.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

from routemaster.domain.names import parse_topic
from routemaster.errors import InvalidInput

MAX_LENGTH = 128
_MAX_REGEX_BYTES = 1 << 20

_GLOB = re.compile(r"[a-z_*?]+")


@dataclass(frozen=True, slots=True)
class Pattern:
    text: str

    @property
    def is_plain(self) -> bool:
        return not (_is_regex(self.text) or "*" in self.text or "?" in self.text)

    def matches(self, topic: str) -> bool:
        if self.is_plain:
            return topic == self.text
        return _compiled(self.text).fullmatch(topic) is not None


def parse_pattern(value: object, field: str = "topics") -> Pattern:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_LENGTH:
        raise InvalidInput(field, f"must be a string of 1 to {MAX_LENGTH} characters")
    pattern = Pattern(value)
    if pattern.is_plain:
        parse_topic(value, field)
    else:
        _check_compiles(value, field)
    return pattern


def _is_regex(text: str) -> bool:
    return len(text) > 2 and text[0] == text[-1] == "/"


def _check_compiles(text: str, field: str) -> None:
    if not _is_regex(text) and not _GLOB.fullmatch(text):
        raise InvalidInput(field, "a glob holds only a-z, _, * and ?")
    if not (text.isascii() and text.isprintable()):
        raise InvalidInput(field, "a regular expression must be printable ASCII")
    try:
        _compiled(text)
    except re2.error as problem:
        raise InvalidInput(field, f"not a regular expression: {_reason(problem)}") from None


@lru_cache(maxsize=1024)
def _compiled(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False  # it would write the subscriber's text to our stderr
    options.max_mem = _MAX_REGEX_BYTES
    return re2.compile(text[1:-1] if _is_regex(text) else _glob_as_regex(text), options)


def _glob_as_regex(glob: str) -> str:
    return glob.replace("*", "[a-z_]*").replace("?", "[a-z_]")


def _reason(problem: Exception) -> str:
    reason = problem.args[0] if problem.args else "invalid"
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)

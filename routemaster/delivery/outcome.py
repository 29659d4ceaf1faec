"""What an answer means for the batch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from enum import Enum

# A subscriber may ask for patience, but not for ever, and not for none.
LEAST_WAIT_MS, MOST_WAIT_MS = 1_000, 3_600_000
GONE = 410
THROTTLING = (429, 503)


class Verdict(Enum):
    DELIVERED = "delivered"
    THROTTLED = "throttled"
    FAILED = "failed"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Response:
    """What came back. `status` is 0 when nothing did, and `error` then says why."""

    status: int = 0
    error: str = ""
    retry_after: str = ""
    excerpt: bytes = b""
    received_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    verdict: Verdict
    error_class: str = ""
    wait_ms: int = 0


def judge(response: Response, now_ms: int) -> Outcome:
    status = response.status
    if not status:
        return Outcome(Verdict.FAILED, response.error or "network")
    if 200 <= status < 300:
        return Outcome(Verdict.DELIVERED)
    if status == GONE:
        return Outcome(Verdict.GONE, "http_410")
    if status in THROTTLING and response.retry_after:
        wait_ms = parse_retry_after(response.retry_after, now_ms)
        if wait_ms is not None:
            return Outcome(Verdict.THROTTLED, f"http_{status}", wait_ms)
    if 300 <= status < 400:
        return Outcome(Verdict.FAILED, "redirect")
    return Outcome(Verdict.FAILED, f"http_{status}")


def parse_retry_after(text: str, now_ms: int) -> int | None:
    """Seconds or a date, kept within bounds; None when it is neither."""
    text = text.strip()
    if text.isascii() and text.isdecimal():
        wait_ms = int(text[:12]) * 1000
    else:
        try:
            wait_ms = date_ms(text) - now_ms
        except (ValueError, TypeError, OverflowError):
            return None
    return max(LEAST_WAIT_MS, min(MOST_WAIT_MS, wait_ms))


def date_ms(text: str) -> int:
    when = parsedate_to_datetime(text)
    if when.tzinfo is None:  # HTTP's dates are GMT, also the kinds that do not say so
        when = when.replace(tzinfo=UTC)
    return int(when.timestamp() * 1000)

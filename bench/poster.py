"""The bare client: what pycurl can do with the same bodies when there is no bus."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pycurl

HEADERS = ["Content-Type: application/json", "Expect:"]


def post_all(url: str, bodies: Sequence[bytes], at_once: int) -> float:
    """Posts each body once, over that many kept connections. Returns the seconds it took."""
    multi = pycurl.CurlMulti()
    left = iter(bodies)
    busy = 0
    began_s = time.monotonic()
    for _ in range(min(at_once, len(bodies))):
        begin(multi, handle(url), next(left))
        busy += 1
    while busy:
        multi.select(1.0)
        multi.perform()
        _, done, failed = multi.info_read()
        if failed:
            raise RuntimeError(f"the bare client failed: {failed[0][2]}")
        for curl in done:
            multi.remove_handle(curl)
            body = next(left, None)
            if body is None:
                busy -= 1
            else:
                begin(multi, curl, body)
    return time.monotonic() - began_s


def handle(url: str) -> pycurl.Curl:
    curl = pycurl.Curl()
    curl.setopt(pycurl.URL, url)
    curl.setopt(pycurl.POST, 1)
    curl.setopt(pycurl.HTTPHEADER, HEADERS)
    curl.setopt(pycurl.WRITEFUNCTION, len)
    return curl


def begin(multi: pycurl.CurlMulti, curl: pycurl.Curl, body: bytes) -> None:
    curl.setopt(pycurl.POSTFIELDS, body)
    multi.add_handle(curl)
    multi.perform()

"""Moves the wall clock of the process that finds this on its path; see cluster.py."""

from __future__ import annotations

import os
import time

WRONG_BY_S = int(os.environ["WRONG_BY_S"])
right, right_ns = time.time, time.time_ns
time.time = lambda: right() + WRONG_BY_S
time.time_ns = lambda: right_ns() + WRONG_BY_S * 10**9

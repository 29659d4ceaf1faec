from __future__ import annotations

import sys
from collections.abc import Sequence

from routemaster.metrics.sample import Sample


class PrintAdapter:
    """One line per sample on standard output, `key=value` like the log."""

    def send(self, samples: Sequence[Sample]) -> None:
        # One write, so that the lines of two processes do not mix.
        sys.stdout.write("".join(f"{line(sample)}\n" for sample in samples))
        sys.stdout.flush()


def line(sample: Sample) -> str:
    tags = "".join(f" {tag}={text}" for tag, text in sample.tags)
    return f"{sample.kind.value} name={sample.name} value={sample.value}{tags}"

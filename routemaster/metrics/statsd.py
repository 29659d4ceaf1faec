from __future__ import annotations

from collections.abc import Sequence

from datadog.dogstatsd.base import DogStatsd

from routemaster.metrics.sample import Kind, Sample

PREFIX = "routemaster"
# A datagram that no network between here and the server has to cut.
DATAGRAM_BYTES = 1432


class StatsdAdapter:
    """StatsD over UDP with Datadog's tags, which most servers understand.

    Totals go out as gauges named `....total`: StatsD's own counters are increments, and would
    count twice when two workers report in turn."""

    def __init__(self, host: str, port: int) -> None:
        self._client = DogStatsd(
            host=host,
            port=port,
            namespace=PREFIX,
            max_buffer_len=DATAGRAM_BYTES,
            disable_telemetry=True,
            origin_detection_enabled=False,
        )

    def send(self, samples: Sequence[Sample]) -> None:
        try:
            with self._client as client:  # as many samples to a datagram as fit
                for sample in samples:
                    client.gauge(name_of(sample), sample.value, [":".join(t) for t in sample.tags])
        finally:
            self._client.close_socket()  # the name is looked up anew: the server may move


def name_of(sample: Sample) -> str:
    return f"{sample.name}.total" if sample.kind is Kind.COUNTER else sample.name

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from routemaster.metrics.prometheus import exposition
from routemaster.metrics.sample import Sample, counter, gauge


def parsed(samples: list[Sample]) -> dict[str, tuple[str, list[tuple[dict[str, str], float]]]]:
    return {
        family.name: (family.type, [(sample.labels, sample.value) for sample in family.samples])
        for family in text_string_to_metric_families(exposition(samples))
    }


def test_label_values_are_escaped():
    odd = 'a"b\\c\nd\\n{},='
    assert parsed([gauge("x", 1, tag=odd)]) == {"routemaster_x": ("gauge", [({"tag": odd}, 1.0)])}


def test_a_family_stands_together_under_one_type():
    text = exposition([gauge("a", 1, t="1"), gauge("b", 2), gauge("a", 3, t="2")])
    assert text.splitlines() == [
        "# TYPE routemaster_a gauge",
        'routemaster_a{t="1"} 1',
        'routemaster_a{t="2"} 3',
        "# TYPE routemaster_b gauge",
        "routemaster_b 2",
    ]


def test_a_counters_tags():
    field = "events.dropped,reason=too old, and big,subscriber=a:b-c"
    assert exposition([counter(field, 7)]).splitlines()[1] == (
        'routemaster_events_dropped_total{reason="too old, and big",subscriber="a:b-c"} 7'
    )

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from tests.web.calls import EVENT


def samples(response) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(response.get_data(as_text=True))
        for sample in family.samples
    }


def test_gauges_and_counters(root, alice, bob):
    bob.follow("orders")
    alice.publish("orders", EVENT, EVENT)
    response = root.get("/metrics")
    assert response.content_type == "text/plain; version=0.0.4; charset=utf-8"
    found = samples(response)
    assert found["routemaster_events_queued", (("subscriber", "bob"),)] == 2
    assert found["routemaster_batches_queued", (("subscriber", "bob"),)] == 1
    assert found["routemaster_events_published_total", (("topic", "orders"),)] == 2
    assert found["routemaster_jobs", (("queue", "main"), ("state", "scheduled"))] == 1
    assert found["routemaster_redis_used_bytes", ()] > 100_000
    assert found["routemaster_workers", ()] == 0


def test_a_full_redis_is_told_of(root, redis_server):
    with redis_server.client() as redis:
        redis.config_set("maxmemory", "1")
        response = root.get("/metrics")
        redis.config_set("maxmemory", "0")
    assert response.status_code == 200
    assert samples(response)["routemaster_redis_max_bytes", ()] == 1

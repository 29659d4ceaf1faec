from __future__ import annotations

from tests.web.calls import EVENT


def topics(caller) -> dict[str, dict[str, object]]:
    return {row["name"]: row for row in caller.get("/topics").get_json()}


def test_the_first_publisher_owns_the_topic(alice, bob):
    assert alice.publish("orders", EVENT).status_code == 204
    response = bob.publish("orders", EVENT)
    assert response.status_code == 403
    assert "alice" in response.get_json()["error"]
    assert alice.publish("orders", EVENT).status_code == 204


def test_a_topic_made_by_a_subscription_is_owned_by_its_first_publisher(alice, bob):
    bob.follow("orders")
    assert topics(bob)["orders"]["publisher"] is None
    assert alice.publish("orders", EVENT).status_code == 204
    assert topics(bob)["orders"]["publisher"] == "alice"
    assert bob.publish("orders", EVENT).status_code == 403
    assert bob.queued() == 1


def test_root_publishes_to_anybodys_topic_and_owns_none(alice, bob, root):
    alice.publish("orders", EVENT)
    assert root.publish("orders", EVENT).status_code == 204
    assert topics(root)["orders"]["publisher"] == "alice"
    assert root.publish("fresh", EVENT).status_code == 204
    assert topics(root)["fresh"]["publisher"] is None
    assert bob.publish("fresh", EVENT).status_code == 204
    assert topics(root)["fresh"]["publisher"] == "bob"


def test_listing_counts_events_and_shows_the_last(alice, bob):
    assert topics(alice) == {}
    alice.publish("orders", EVENT)
    alice.publish("orders", {"type": "delete", "url": "https://pub.example/é", "timestamp": 7,
                             "data": {"a": [1, None]}})  # fmt: skip
    bob.publish("a_first", EVENT)
    last = {
        "topic": "orders", "type": "delete", "url": "https://pub.example/é", "t": 7,
        "data": {"a": [1, None]},
    }  # fmt: skip
    assert [row["name"] for row in bob.get("/topics").get_json()] == ["a_first", "orders"]
    assert topics(bob)["orders"] == {
        "name": "orders", "publisher": "alice", "events": 2, "last_event": last,
    }  # fmt: skip


def test_only_the_owner_or_root_deletes(alice, bob, root):
    alice.publish("orders", EVENT)
    alice.publish("bills", EVENT)
    assert bob.delete("/topics/orders").status_code == 403
    assert alice.delete("/topics/orders").status_code == 204
    assert root.delete("/topics/bills").status_code == 204
    assert topics(root) == {}
    for caller in (alice, root):
        assert caller.delete("/topics/orders").status_code == 404


def test_an_unowned_topic_is_deleted_by_root_only(alice, bob, root):
    bob.follow("orders")
    assert alice.delete("/topics/orders").status_code == 403
    assert bob.delete("/topics/orders").status_code == 403
    assert root.delete("/topics/orders").status_code == 204


def test_deleting_unsubscribes_and_keeps_what_is_queued(alice, bob, client_named):
    bob.follow("orders", "bills")
    alice.publish("orders", EVENT)
    alice.publish("bills", EVENT)
    assert alice.delete("/topics/orders").status_code == 204
    [mine] = bob.subscriptions()
    assert mine["topics"] == ["bills"]
    assert mine["events"]["queued"] == 2
    # The name is free again, and bob does not get what he did not ask for.
    carol = client_named("carol")
    assert carol.publish("orders", EVENT).status_code == 204
    assert topics(carol)["orders"]["publisher"] == "carol"
    assert topics(carol)["orders"]["events"] == 1
    assert bob.queued() == 2


def test_a_deleted_topic_that_comes_back_is_caught_by_patterns(alice, bob):
    bob.follow("ord*")
    alice.publish("orders", EVENT)
    alice.delete("/topics/orders")
    alice.publish("orders", EVENT)
    [mine] = bob.subscriptions()
    assert mine["topics"] == ["orders"]
    assert mine["events"]["queued"] == 2

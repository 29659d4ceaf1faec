"""The checker on histories made by hand: it passes the good, and names what is bad."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.faults.checker import Bounds, problems
from tests.faults.history import FAILED, OK, UNKNOWN, Fault, History, Life, Publish, Request

BOUNDS = Bounds(lease_s=3, deadline_s=1, margin_s=1)


def request(bid: str, first: int, *events: str, at: float, status: int = 200, **fields) -> Request:
    made = Request(
        "s", bid, "0", first, first + len(events) - 1, events, status, at, at + 0.01
    )  # fmt: skip
    return replace(made, **fields)


def good() -> History:
    """Two batches, the second of which comes twice because its worker was killed."""
    return History(
        publishes=[
            Publish("t", ("p/1", "p/2"), 1.0, 1.1, OK),
            Publish("t", ("p/3",), 2.0, 2.1, UNKNOWN),
            Publish("t", ("p/4",), 2.2, 2.3, FAILED),
            Publish("t", ("p/5",), 12.0, 12.1, OK),
        ],
        lives=[Life("s", ("t",), 0.0, 0.1)],
        requests=[
            request("b1", 1, "p/1", "p/2", at=1.2, status=500),
            request("b1", 1, "p/1", "p/2", at=1.4),
            request("b2", 3, "p/3", at=2.2),
            request("b2", 3, "p/3", at=5.0),
            request("b3", 4, "p/5", at=12.2),
        ],
        faults=[Fault("kill", 2.2, 2.2)],
    )


def found(history: History) -> str:
    return "\n".join(problems(history, BOUNDS))


def test_a_good_history_passes():
    assert found(good()) == ""


def bad(**changes) -> History:
    history = good()
    for name, value in changes.items():
        setattr(history, name, value(getattr(history, name)))
    return history


def without(*numbers: int):
    return lambda rows: [row for n, row in enumerate(rows) if n not in numbers]


def plus(*more):
    return lambda rows: [*rows, *more]


def changed(number: int, **fields):
    return lambda rows: [replace(r, **fields) if n == number else r for n, r in enumerate(rows)]


OTHER = Life("u", ("t",), 0.0, 0.1)
FOR_OTHER: dict[str, Any] = {"life": "u"}


@pytest.mark.parametrize(
    ("history", "said"),
    [
        (bad(requests=without(4)), "1 acknowledged events lost: ['p/5']"),
        (bad(requests=changed(1, status=500)), "begins at 3, but 1 was never acknowledged"),
        (bad(requests=plus(request("b4", 5, "p/4", at=13))), "p/4 was refused, and delivered"),
        (bad(requests=plus(request("b4", 5, "p/9", at=13))), "p/9 was never published"),
        (bad(requests=changed(3, arrived=11.0)), "b2 came again without a fault"),
        (bad(faults=changed(0, may_repeat=False)), "b2 came again without a fault"),
        (bad(requests=plus(request("b2", 3, "p/3", at=5.5))), "2 batches came again, in 1 faults"),
        (bad(requests=changed(3, events=("p/1",))), "b2 came with other contents"),
        (bad(requests=changed(3, bid="bx")), "p/3 came in b2 and in bx"),
        (bad(requests=changed(2, first=4, last=4)), "but 3 was never acknowledged"),
        (bad(requests=changed(4, first=3, last=3)), "b3 begins at 3, again after 3"),
        (bad(requests=changed(4, last=9)), "b3 has other events than its numbers say"),
        (bad(requests=changed(2, arrived=1.405)), "b2 arrived before b1 was answered"),
        (bad(requests=changed(1, events=("p/2", "p/1"))), "p/1 came after p/2"),
        (bad(lives=changed(0, leaving=3.0, left=3.5)), "b2 arrived after it had unsubscribed"),
        (bad(lives=changed(0, leaving=11.5, left=11.9)), "p/5 is from after it left"),
        (bad(lives=changed(0, subscribing=1.5, subscribed=1.6)), "p/1 is from before it"),
        (bad(lives=changed(0, topics=("x",))), "of a topic it does not follow"),
        (
            bad(lives=plus(OTHER), requests=plus(request("c1", 1, "p/1", "p/2", at=1, **FOR_OTHER),
                                                 request("c2", 3, "p/5", at=12.3, **FOR_OTHER))),
            "('p/3',) (unknown) reached some and not others",
        ),
        (bad(faults=plus(Fault("freeze", 5.5, 5.6))), "nothing arrived within 5 s of freeze"),
    ],
)  # fmt: skip
def test_a_bad_history_is_named(history, said):
    assert said in found(history)


def test_what_was_dropped_and_told_is_not_lost():
    history = bad(requests=lambda rows: [replace(rows[4], dropped=((1, 3),))], faults=without(0))
    assert found(history) == ""
    history = bad(requests=changed(0, dropped=((1, 2),)), publishes=without(0))
    history.requests = [replace(good().requests[4], dropped=((1, 2),))]
    assert "begins at 4, but 3 was never acknowledged" in found(history)


def test_what_fails_may_come_as_often_as_it_wants():
    more = [request("b1", 1, "p/1", "p/2", at=1.2 + n / 1000, status=0) for n in range(100)]
    assert found(bad(requests=lambda rows: more + rows)) == ""


def test_what_was_told_early_still_counts():
    history = bad(publishes=without(0), faults=without(0))
    first = replace(history.requests[2], dropped=((1, 2), (4, 6)))
    history.requests = [first, request("b3", 7, "p/5", at=12.2)]
    assert found(history) == ""


def test_who_refuses_what_came_again_gets_it_once_more():
    again = request("b2", 3, "p/3", at=6.0)
    assert found(bad(requests=lambda rows: [*changed(3, status=500)(rows), again])) == ""


def test_a_publish_that_nobody_answered_may_take_effect_late():
    late = Publish("t", ("p/0",), 1.0, 1.1, UNKNOWN)
    more = request("b4", 5, "p/0", at=13)
    assert found(bad(publishes=plus(late), requests=plus(more))) == ""
    acknowledged = replace(late, result=OK)
    assert "p/0 came after p/5" in found(bad(publishes=plus(acknowledged), requests=plus(more)))

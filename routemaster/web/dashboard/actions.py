"""What can be done here: each is asked about on a page of its own, and done by a POST from it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from flask import Blueprint, Response

from routemaster.bus import Bus
from routemaster.errors import Forbidden, NotFound
from routemaster.operate import backlog, replay
from routemaster.store.operations import Operation
from routemaster.subscribe import set_state
from routemaster.web.dashboard.operations import Histories
from routemaster.web.dashboard.pages import HERE, Pages
from routemaster.web.dashboard.sessions import Session, Sessions, visible
from routemaster.web.dashboard.sign_in import EXPIRED, moved
from routemaster.web.operations import redeliver_now

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Action:
    text: str
    question: str
    effect: str
    act: Callable[[Bus, str], object]


ACTIONS = {
    "pause": Action(
        "Pause", "Pause {}?",
        "Nothing more is delivered to it until it is resumed. Its events go on being queued, and "
        "use memory. What is being delivered at this moment ends.",
        lambda bus, name: set_state(bus, name, "paused"),
    ),
    "resume": Action(
        "Resume", "Resume {}?",
        "Everything that waits is delivered, oldest first, as fast as it answers.",
        lambda bus, name: set_state(bus, name, "active"),
    ),
    "replay": Action(
        "Replay", "Deliver now everything {} holds?",
        "Every lane is due at once: those that wait after a failure, and those in quarantine, too. "
        "A paused or disabled subscriber is resumed. Nothing that was delivered comes again.",
        lambda bus, name: sum(1 for _ in replay(bus, name)),
    ),
}  # fmt: skip
DONE = {
    "pause": "Paused: nothing more is delivered.",
    "resume": "Resumed.",
    "replay": "Everything that waits is due now.",
    "redeliver": "The lane of that delivery is due now.",
}


def add(
    routes: Blueprint, bus: Bus, sessions: Sessions, pages: Pages, histories: Histories
) -> None:
    choice = "any(" + ",".join(f"'{name}'" for name in ACTIONS) + ")"

    @routes.get(f"/subscribers/<name>/<{choice}:verb>")
    def ask(name: str, verb: str) -> Response:
        session = sessions.current()
        held = backlog(bus, visible(session, name))
        action = ACTIONS[verb]
        return pages.page(
            "confirm.html", session,
            question=action.question.format(name), effect=action.effect, verb=action.text,
            facts=[("Waiting", f"{held.events:,} events in {held.batches:,} batches"),
                   ("State", held.state)],
            back=f"{HERE}/subscribers/{name}", is_danger=verb == "pause",
        )  # fmt: skip

    @routes.post(f"/subscribers/<name>/<{choice}:verb>")
    def act(name: str, verb: str) -> Response:
        session = posting()
        ACTIONS[verb].act(bus, visible(session, name))
        return done(session, name, verb)

    @routes.get("/subscribers/<name>/operations/<bid>/redeliver")
    def ask_redeliver(name: str, bid: str) -> Response:
        session = sessions.current()
        found = kept(visible(session, name), bid)
        return pages.page(
            "confirm.html", session,
            question="Deliver this batch now?",
            effect="Its lane is due at once. A lane keeps its order: what stands before it in the "
            "lane goes first.",
            verb="Redeliver",
            facts=[("Batch", found.bid), ("Subscriber", found.subscriber), ("Lane", found.lane),
                   ("Events", f"{found.events:,}"), ("Status", found.status)],
            back=f"{HERE}/subscribers/{found.subscriber}", is_danger=False,
        )  # fmt: skip

    @routes.post("/subscribers/<name>/operations/<bid>/redeliver")
    def redeliver(name: str, bid: str) -> Response:
        session = posting()
        found = kept(visible(session, name), bid)
        redeliver_now(bus, found)
        return done(session, name, "redeliver")

    def kept(name: str, bid: str) -> Operation:
        found = bus.operations.find(bid, [name], bus.clock.now_ms())
        if found is None or found.subscriber != name:
            raise NotFound("There is no such delivery, or it is older than 24 hours.")
        return found

    def posting() -> Session:
        session = sessions.current()
        if not sessions.is_ours(session.id):
            raise Forbidden(EXPIRED)
        return session

    def done(session: Session, name: str, verb: str) -> Response:
        log.info("done action=%s subscriber=%s by=%s", verb, name, session.identity.name)
        histories.forget(name)
        return moved(f"{HERE}/subscribers/{name}?done={verb}")

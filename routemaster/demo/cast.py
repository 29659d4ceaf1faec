"""Who plays: topics and their bursts of traffic, subscribers and their manners."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, islice, product

import numpy as np

THINGS = (
    "orders", "payments", "invoices", "riders", "menus", "refunds", "carts", "reviews", "stock",
    "prices", "accounts", "addresses", "coupons", "shifts", "zones", "emails", "tickets",
    "receipts", "kitchens", "parcels",
)  # fmt: skip
USES = (
    "mailer", "search", "ledger", "analytics", "dispatch", "fraud", "archive", "webhooks", "cache",
    "audit",
)  # fmt: skip
PLACES = ("berlin", "tokyo", "lima", "oslo")


@dataclass(frozen=True, slots=True)
class Topic:
    name: str
    publisher: str
    every_s: float  # between two bursts, at the busiest hour
    events: float  # in one burst, on average
    event_bytes: int
    peak_hour: float


@dataclass(frozen=True, slots=True)
class Subscriber:
    number: int
    name: str
    topics: tuple[int, ...]
    lanes: tuple[str, ...]
    max_events: int
    timeout_ms: int
    median_ms: float  # how long it usually takes to answer
    spread: float
    failing: float  # the share of attempts that fails without any reason


def topics(count: int, seed: int) -> list[Topic]:
    dice = np.random.default_rng([seed, 1])
    made = []
    for number in range(count):
        name = THINGS[number % len(THINGS)]
        made.append(
            Topic(
                name if number < len(THINGS) else f"{name}_{spelled(number // len(THINGS))}",
                f"{name}-service",
                # The first are the busiest, and every bus has a few that hardly speak.
                every_s=round(40.0 * 1.13**number, 1) if number < 24 else 900.0,
                events=round(float(dice.uniform(15, 60)), 1),
                event_bytes=int(dice.integers(90, 200)),
                peak_hour=round(float(dice.normal(14, 1.5)), 2),
            )
        )
    return made


def subscribers(count: int, topic_count: int, seed: int) -> list[Subscriber]:
    dice = np.random.default_rng([seed, 2])
    return [_subscriber(n, name, topic_count, dice) for n, name in enumerate(names(count))]


def names(count: int) -> list[str]:
    """orders-mailer, payments-search, ...: neighbours differ in both words."""
    pairs = [
        f"{thing}-{USES[(n + shift) % len(USES)]}"
        for shift in range(len(USES))
        for n, thing in enumerate(THINGS)
    ]
    extra = (f"{pair}-{number}" for number, pair in product(range(2, 100_000), pairs))
    return [*pairs[:count], *islice(extra, max(0, count - len(pairs)))]


def spelled(number: int) -> str:
    """Names of topics hold no digits."""
    return "".join(islice(cycle("abcdefghijklmnopqrstuvwxyz"), number, number + 2))


def _subscriber(number: int, name: str, topic_count: int, dice: np.random.Generator) -> Subscriber:
    own = number % min(topic_count, len(THINGS))  # orders-mailer follows orders
    others = dice.choice(topic_count, size=int(dice.integers(0, 3)))
    kind = number % 10
    lanes: tuple[str, ...] = ("0", "1", "2") if kind == 4 else ("0",)
    if kind == 8:
        lanes = tuple(f"f:{place}" for place in PLACES)
    return Subscriber(
        number, name,
        topics=tuple(sorted({own, *(int(other) for other in others)})),
        lanes=lanes,
        max_events=int(dice.choice([50, 100, 100, 250])),
        timeout_ms=int(dice.choice([0, 200, 500, 500, 2000])),
        median_ms=round(float(np.exp(dice.uniform(np.log(12), np.log(220)))), 1),
        spread=round(float(dice.uniform(0.25, 0.5)), 3),
        failing=round(float(dice.choice([0.0, 0.0005, 0.001, 0.002])), 5),
    )  # fmt: skip

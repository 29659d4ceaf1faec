"""Every operation of the API: who may call it, what it takes, what it answers, and an example."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from routemaster.web.openapi.schemas import CLIENT, COUNT, LIMIT, TEXT, TOPIC, Schema, listing, ref
from routemaster.web.pulls import MOST_LEASE_S, MOST_WAIT_S, USUAL_LEASE_S

ANYONE, CLIENTS, ROOT, NOBODY = "any client, or root", "clients", "root", "no credentials"
JSON, LINES = "application/json", "application/x-ndjson"


@dataclass(frozen=True)
class Parameter:
    name: str
    where: str  # path, query or header
    schema: Schema
    meaning: str
    example: object = None


@dataclass(frozen=True)
class Answer:
    meaning: str
    schema: Schema | None = None
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    example: object = None


@dataclass(frozen=True)
class Operation:
    method: str
    paths: tuple[str, ...]  # both spellings, where there are two
    group: str
    summary: str
    callers: str
    answers: dict[int, Answer]
    parameters: tuple[Parameter, ...] = ()
    body: Schema | None = None
    body_types: tuple[str, ...] = (JSON,)
    body_required: bool = True
    example: Any = None


def both(path: str) -> tuple[str, ...]:
    return f"/subscription{path}", f"/subscriber{path}"


def plural(path: str) -> tuple[str, ...]:
    return f"/subscriptions{path}", f"/subscribers{path}"


NAME = Parameter("name", "path", CLIENT, "a subscriber", "mailer")
TOPIC_NAME = Parameter("name", "path", TOPIC, "a topic", "orders")
BATCH = Parameter("bid", "path", TEXT, "a batch id: its `webhook-id`")
LEASE_SCHEMA = {"type": "integer", "minimum": 1, "maximum": MOST_LEASE_S, "default": USUAL_LEASE_S}
LEASE = Parameter("lease", "query", LEASE_SCHEMA, "seconds that the batch is kept for you", 30)
WAIT_SCHEMA = {"type": "integer", "minimum": 0, "maximum": MOST_WAIT_S, "default": 0}
KEY = Parameter(
    "Idempotency-Key", "header", {"type": "string", "maxLength": 256, "pattern": "^[ -~]*$"},
    "the same key again is the same request", "import-42",
)  # fmt: skip
REMEMBER = Parameter(
    "Routemaster-Remember", "header", {"type": "integer", "minimum": 1, "maximum": 86_400},
    "seconds for which the request's key and ids are remembered, if not 24 hours", 600,
)  # fmt: skip
FENCE = Parameter(
    "Routemaster-Lease", "header", {"type": "string", "pattern": "^[0-9]{0,20}$"},
    "what came with the batch: without it, any lease of the batch is meant",
)  # fmt: skip
SEEN = Parameter(
    "Last-Event-ID", "header", {"type": "string", "pattern": "^[0-9]{0,15}$"},
    "the last event seen: the first one tells how many were missed",
)  # fmt: skip
DONE = Answer("done")
BAD = Answer("bad input: the field and the rule", ref("Error"))
MISSING = Answer("there is none", ref("Error"))
NOT_YOURS = Answer("another client's, or not for this kind of caller", ref("Error"))
LOST = Answer("the lease is lost: somebody else may have the batch", ref("Error"))
LARGE = Answer("too large; the error names the limit", ref("Error"))
TYPE = Answer("not a content type that this takes", ref("Error"))
UNTIL = {"Routemaster-Lease-Until": "when the lease ends, milliseconds since 1970"}
EVENT = {"type": "create", "url": "https://shop.example/orders/1", "data": {"total": 995}}
MAILER = {
    "topics": ["orders", "email_*"], "callback": "https://mailer.example/events",
    "uuid": "secret-for-the-callback", "max": 50, "timeout": 1000,
}  # fmt: skip
SECRET = {"secret": "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
CHANGED = {204: DONE, 403: NOT_YOURS, 404: MISSING}

TOPICS = [
    Operation(
        "post", ("/topics/{name}",), "Topics", "Publish events", ANYONE,
        {
            204: Answer("stored in the batch of every subscriber", headers={
                "Routemaster-Duplicates": "how many were known already, when there were any"}),
            200: Answer("the same, to the Elixir client, which takes nothing else for a success"),
            400: BAD, 403: Answer("the topic belongs to another client", ref("Error")),
            413: LARGE, 415: TYPE,
            422: Answer("this key came before with another body", ref("Error")),
            429: Answer("a subscriber has too many lanes (facets)", ref("Error")),
        },
        (TOPIC_NAME, KEY, REMEMBER),
        {"anyOf": [ref("Event"), {**listing(ref("Event")), "minItems": 1}]},
        (JSON, LINES), example=EVENT,
    ),
    Operation("get", ("/topics",), "Topics", "List the topics", ANYONE,
              {200: Answer("all topics", listing(ref("Topic")))}),
    Operation("get", ("/topics/{name}/stream",), "Topics", "Follow what is accepted, live", ANYONE,
              {200: Answer("Server-Sent Events until the caller goes", TEXT, "text/event-stream"),
               400: BAD, 404: MISSING, 429: Answer("too many streams are open", ref("Error"))},
              (TOPIC_NAME, SEEN)),
    Operation("delete", ("/topics/{name}", "/topic/{name}"), "Topics", "Delete a topic", ANYONE,
              {**CHANGED, 400: BAD}, (TOPIC_NAME,)),
]  # fmt: skip

SUBSCRIPTIONS = [
    Operation("post", both(""), "Subscriptions", "Subscribe, or change the subscription", CLIENTS,
              {204: DONE, 400: BAD, 403: NOT_YOURS, 413: LARGE, 415: TYPE},
              body=ref("Subscription"), example=MAILER),
    Operation("get", plural(""), "Subscriptions", "List subscriptions: a client its own", ANYONE,
              {200: Answer("with what is queued", listing(ref("ListedSubscription")))}),
    Operation("delete", both("/topics/{topic}"), "Subscriptions", "Unsubscribe from one topic",
              CLIENTS, {**CHANGED, 400: BAD},
              (Parameter("topic", "path", TOPIC, "a topic", "orders"),)),
    Operation("post", both("/pause"), "Subscriptions", "Pause: events go on being queued",
              CLIENTS, CHANGED),
    Operation("post", both("/resume"), "Subscriptions", "Resume, also after a 410", CLIENTS,
              CHANGED),
    Operation("post", plural("/{name}/pause"), "Subscriptions", "Pause a subscriber", ANYONE,
              {**CHANGED, 400: BAD}, (NAME,)),
    Operation("post", plural("/{name}/resume"), "Subscriptions", "Resume a subscriber", ANYONE,
              {**CHANGED, 400: BAD}, (NAME,)),
    Operation("get", both("/secret"), "Subscriptions", "What signs the deliveries", CLIENTS,
              {200: Answer("the secret", ref("Secret")), 403: NOT_YOURS, 404: MISSING}),
    Operation("post", both("/secret"), "Subscriptions", "Replace the signing secret", CLIENTS,
              {200: Answer("the new one; the old one signs too for a day", ref("Secret")),
               400: BAD, 403: NOT_YOURS, 404: MISSING, 413: LARGE, 415: TYPE},
              body=ref("NewSecret"), body_required=False, example=SECRET),
    Operation("delete", plural("/{name}"), "Subscriptions", "Unsubscribe a subscriber", ANYONE,
              {**CHANGED, 400: BAD}, (NAME,)),
    Operation("delete", both(""), "Subscriptions", "Unsubscribe: what is queued goes too", CLIENTS,
              CHANGED),
]  # fmt: skip

PULLING = [
    Operation(
        "get", both("/batch"), "Pulling", "Take the next batch, under a lease", CLIENTS,
        {
            200: Answer("a batch, with the headers of a delivery", listing(ref("DeliveredEvent")),
                        headers={**UNTIL, "Routemaster-Lease": "names the lease",
                                 "webhook-id": "the batch id", "Routemaster-Attempt": "1, 2, ...",
                                 "Routemaster-Lane": "its lane",
                                 "Routemaster-Sequence": "first-last"}),
            204: Answer("none within `wait`", headers={"Retry-After": "too many wait already"}),
            400: BAD, 403: NOT_YOURS, 404: MISSING,
            409: Answer("the subscription has a callback", ref("Error")),
        },
        (Parameter("wait", "query", WAIT_SCHEMA, "seconds to wait for one", 0), LEASE,
         Parameter("Idempotency-Key", "header", KEY.schema, "asks again after a lost answer")),
    ),
    Operation("delete", both("/batch/{bid}"), "Pulling", "Acknowledge a batch", CLIENTS,
              {204: DONE, 400: BAD, 403: NOT_YOURS, 409: LOST}, (BATCH, FENCE)),
    Operation("post", both("/batch/{bid}/refuse"), "Pulling", "Refuse a batch: it comes again",
              CLIENTS, {204: DONE, 400: BAD, 403: NOT_YOURS, 409: LOST, 413: LARGE, 415: TYPE},
              (BATCH, FENCE), ref("Refusal"), body_required=False, example={"delay": 5000}),
    Operation("post", both("/batch/{bid}/renew"), "Pulling", "Keep a batch for longer", CLIENTS,
              {204: Answer("kept", headers=UNTIL), 400: BAD, 403: NOT_YOURS, 409: LOST},
              (BATCH, FENCE, LEASE)),
]  # fmt: skip

OPERATIONS = [
    Operation("get", ("/operations/{bid}",), "Operations", "What became of a delivery", ANYONE,
              {200: Answer("with every attempt", ref("Operation")), 404: MISSING}, (BATCH,)),
    Operation(
        "get", both("/operations"), "Operations", "Deliveries, newest first", ANYONE,
        {200: Answer("one page", ref("Operations")), 400: BAD, 403: NOT_YOURS},
        (Parameter("status", "query", {"enum": ["QUEUED", "RUNNING", "SUCCESS", "ERROR",
                                                "DROPPED"]}, "only these"),
         Parameter("limit", "query", LIMIT, "how many", 50),
         Parameter("before", "query", {"type": "string", "pattern":
                   "^[0-9]{1,15}-[A-Za-z0-9_-]{1,64}$"}, "`next` of the page before"),
         Parameter("subscriber", "query", CLIENT, "whose; root must say")),
    ),
    Operation("post", ("/operations/{bid}/redeliver",), "Operations", "Deliver now", ANYONE,
              {202: Answer("it is due", {"type": "object", "properties": {"id": TEXT},
                                         "required": ["id"]}),
               404: MISSING, 409: Answer("it cannot be; says what can", ref("Error"))}, (BATCH,)),
]  # fmt: skip

OPERATING = [
    Operation("get", ("/api_tokens",), "Tokens", "List the tokens, masked", ROOT,
              {200: Answer("all", listing(ref("Token"))), 204: Answer("there is none"),
               403: NOT_YOURS}),
    Operation("post", ("/api_tokens",), "Tokens", "Make a token", ROOT,
              {201: Answer("the only time it is shown", ref("Token")), 400: BAD, 403: NOT_YOURS,
               413: LARGE, 415: TYPE},
              body=ref("NewToken"), example={"name": "shop"}),
    Operation("delete", ("/api_tokens/{token}",), "Tokens", "Revoke a token", ROOT,
              {204: DONE, 403: NOT_YOURS},
              (Parameter("token", "path", TEXT, "the token, or its masked form",
                         "shop--****0123456789ab"),)),
    Operation("get", ("/pulse",), "Operating", "Does the bus take events?", ANYONE, {204: DONE}),
    Operation("get", ("/pulse/scaling",), "Operating", "Is there more to do than workers manage?",
              ANYONE, {204: Answer("after a second when 100 jobs or more are due",
                                   headers={"Routemaster-Jobs-Due": "how many"})}),
    Operation("get", ("/metrics",), "Operating", "Gauges and counters", ROOT,
              {200: Answer("Prometheus' text format", TEXT, "text/plain"), 403: NOT_YOURS}),
    Operation("get", ("/health",), "Operating", "Is it up?", NOBODY,
              {200: Answer("yes", ref("Health"), example={"status": "ok", "redis": "ok"}),
               503: Answer("without Redis", ref("Health"))}),
    Operation("get", ("/health/ping",), "Operating", "Does the web process answer?", NOBODY,
              {200: Answer("yes", ref("Health"), example={"status": "ok"})}),
    Operation("get", ("/openapi.json",), "Operating", "This description", NOBODY,
              {200: Answer("OpenAPI 3.1", {"type": "object"})}),
    Operation("get", ("/docs",), "Operating", "This description, to read", NOBODY,
              {200: Answer("a page", TEXT, "text/html")}),
    Operation("get", ("/docs/style.css",), "Operating", "What the page looks like", NOBODY,
              {200: Answer("a style sheet", TEXT, "text/css")}),
]  # fmt: skip

ALL = [*TOPICS, *SUBSCRIPTIONS, *PULLING, *OPERATIONS, *OPERATING]

__all__ = ["ALL", "COUNT", "NOBODY", "Answer", "Operation", "Parameter"]

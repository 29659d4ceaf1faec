"""JSON Schemas, of the same definitions that requests are checked with."""

from __future__ import annotations

from typing import Any

import msgspec

from routemaster.domain import event, event_rules, names, pattern, secret, subscription, token
from routemaster.domain.callback import MAX_LENGTH as MAX_CALLBACK
from routemaster.domain.signature import PREFIX
from routemaster.settings import Settings
from routemaster.store.operations import STATUSES
from routemaster.web.operations import MOST
from routemaster.web.pulls import MOST_DELAY_MS

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
WHEN: Schema = {"type": "integer", "minimum": 0, "description": "milliseconds since 1970"}
TOPIC: Schema = {"type": "string", "pattern": f"^{names.TOPIC.pattern}$"}
CLIENT: Schema = {
    "type": "string", "pattern": f"^{names.CLIENT.pattern}$", "not": {"const": names.ROOT},
}  # fmt: skip
LIMIT: Schema = {"type": "integer", "minimum": 1, "maximum": MOST, "default": 50}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def listing(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def record(required: dict[str, Schema], optional: dict[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def ranged(bounds: tuple[int, int, int]) -> Schema:
    least, most, default = bounds
    return {"type": ["integer", "null"], "minimum": least, "maximum": most, "default": default}


def event_schema(settings: Settings) -> Schema:
    """What msgspec decodes events with says it all but the form of the URL."""
    (_,), defined = msgspec.json.schema_components([event.Incoming], ref_template="#/{name}")
    schema: Schema = next(iter(defined.values()))
    properties = schema["properties"]
    properties["url"] |= {"format": "uri", "pattern": "^https://[^\\s?#@]+$"}
    properties["id"]["anyOf"][0]["pattern"] = event_rules.ID.replace(r"\Z", "$")
    properties["target"]["anyOf"][0] = CLIENT
    for name, text in EVENT_FIELDS.items():
        properties[name]["description"] = text.format(most=settings.max_event_data_bytes)
    del schema["title"]
    return schema


EVENT_FIELDS = {
    "type": "what happened to the resource",
    "url": "where the resource is; https, without query string",
    "timestamp": "milliseconds since 1970; null or absent: the time of arrival. Data: it never "
    "drives scheduling",
    "data": "at most {most} bytes as MessagePack",
    "facet": "events of one facet are a lane of their own",
    "target": "deliver to this subscriber only, for back-fills",
    "id": "remembered for 24 hours within the topic: the same again is not stored",
}


def subscription_schema() -> Schema:
    topics: Schema = {
        "type": "array", "minItems": 1, "maxItems": subscription.MAX_TOPICS,
        "items": {"type": "string", "minLength": 1, "maxLength": pattern.MAX_LENGTH},
        "description": "names, globs (`email_*`) or `/regular expressions/` (RE2)",
    }  # fmt: skip
    callback = {
        "type": "string", "format": "uri", "minLength": 1, "maxLength": MAX_CALLBACK,
        "description": "where batches are POSTed; without it the subscriber pulls",
    }  # fmt: skip
    uuid = {
        "type": "string", "pattern": f"^{subscription.UUID.pattern}$",
        "description": "what the bus shows to the callback as Basic user name; required with one",
    }  # fmt: skip
    return record(
        {"topics": topics},
        {
            "callback": nullable(callback),
            "uuid": nullable(uuid),
            "timeout": ranged(subscription.TIMEOUT_MS),
            "max": ranged(subscription.MAX_EVENTS),
            "concurrency": ranged(subscription.CONCURRENCY),
        },
    )


def delivered_event() -> Schema:
    return record(
        {"topic": TOPIC, "type": {"enum": list(event_rules.TYPES)}, "url": TEXT, "t": WHEN},
        {"data": {"type": "object"}, "facet": TEXT},
    )


def listed_subscription() -> Schema:
    events = record({"sent": COUNT, "queued": COUNT, "oldest": nullable(WHEN)})
    return record(
        {
            "subscriber": CLIENT, "callback": nullable(TEXT), "max_events": COUNT,
            "timeout": COUNT, "concurrency": COUNT, "topics": listing(TOPIC),
            "patterns": listing(TEXT), "state": {"enum": ["active", "paused", "disabled"]},
            "health_points": {"type": "integer", "minimum": 0, "maximum": 100},
            "last_attempted_at": nullable(WHEN), "events": events,
            "batches": record({"queued": COUNT}),
        }
    )  # fmt: skip


def operation_schema() -> Schema:
    attempt = record(
        {
            "attempt": COUNT, "started": WHEN, "finished": WHEN, "outcome": TEXT,
            "status": nullable(COUNT), "error": nullable(TEXT), "bytes": COUNT,
            "response": TEXT, "worker": TEXT,
        }
    )  # fmt: skip
    return record(
        {
            "id": TEXT, "subscriber": CLIENT, "lane": TEXT, "status": {"enum": list(STATUSES)},
            "created": WHEN, "updated": WHEN, "events": COUNT, "first_seq": COUNT,
            "last_seq": {"type": "integer"}, "reason": nullable(TEXT),
            "attempts": listing(attempt),
        }
    )  # fmt: skip


def error_schema() -> Schema:
    detail = {
        "type": "object",
        "properties": {"field": TEXT, "rule": TEXT, "position": COUNT, "reason": TEXT},
    }
    return record({"error": TEXT}, {"detail": detail})


def new_token_schema() -> Schema:
    chosen = {"type": "string", "pattern": f"^(?!.*[{token.MARKS}]){token.CHOSEN}$"}
    return record({"name": CLIENT}, {"token": nullable(chosen)})


def secret_schema() -> Schema:
    return {"type": "string", "pattern": f"^{PREFIX}", "description": secret.RULE}


def all_schemas(settings: Settings) -> dict[str, Schema]:
    return {
        "Event": event_schema(settings),
        "DeliveredEvent": delivered_event(),
        "Topic": record(
            {"name": TOPIC, "publisher": nullable(CLIENT), "events": COUNT,
             "last_event": nullable(ref("DeliveredEvent"))}
        ),
        "Subscription": subscription_schema(),
        "ListedSubscription": listed_subscription(),
        "Secret": record({"secret": secret_schema()}),
        "NewSecret": record({}, {"secret": nullable(secret_schema())}),
        "Refusal": record(
            {}, {"delay": {"type": ["integer", "null"], "minimum": 0, "maximum": MOST_DELAY_MS}}
        ),
        "Operation": operation_schema(),
        "Operations": record(
            {"operations": listing(ref("Operation")), "next": nullable(TEXT),
             "counts": {"type": "object", "additionalProperties": COUNT}}
        ),
        "NewToken": new_token_schema(),
        "Token": record({"name": CLIENT, "token": TEXT}),
        "Health": record({"status": {"enum": ["ok", "unavailable"]}}, {"redis": TEXT}),
        "Error": error_schema(),
    }  # fmt: skip

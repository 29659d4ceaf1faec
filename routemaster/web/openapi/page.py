"""`/docs`: the document as one page, made on the server; no script, nothing from elsewhere."""

from __future__ import annotations

import json
from typing import Any

from flask import render_template

GROUP_ORDER = ("get", "post", "delete")


def page(document: dict[str, Any]) -> str:
    groups: dict[str, list[dict[str, Any]]] = {tag["name"]: [] for tag in document["tags"]}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups[operation["tags"][0]].append({**operation, "method": method, "path": path})
    return render_template(
        "docs.html", info=document["info"], groups=groups,
        schemas=document["components"]["schemas"], pretty=pretty, spelled=spelled,
    )  # fmt: skip


def pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def spelled(schema: dict[str, Any]) -> str:
    """A schema in a few words; what it refers to has a place of its own on the page."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "anyOf" in schema:
        return " | ".join(spelled(part) for part in schema["anyOf"])
    kind = schema.get("type", "any")
    if kind == "array":
        return f"list of {spelled(schema['items'])}"
    words = " or ".join(kind) if isinstance(kind, list) else str(kind)
    bounds = [f"{name} {schema[key]:,}" for key, name in BOUNDS if key in schema]
    if "pattern" in schema:
        bounds.append(schema["pattern"])
    return ", ".join([words, *bounds])


BOUNDS = (
    ("minimum", "from"), ("maximum", "to"), ("minLength", "at least"), ("maxLength", "at most"),
    ("minItems", "at least"), ("maxItems", "at most"),
)  # fmt: skip

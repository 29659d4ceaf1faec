"""Prometheus' text format. By hand, because we keep no registry: every number is in Redis, and
what is left of a client library's work is three lines of escaping."""

from __future__ import annotations

from collections.abc import Iterable

from routemaster.metrics.sample import Kind, Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "routemaster_"


def exposition(samples: Iterable[Sample]) -> str:
    families: dict[str, list[Sample]] = {}
    for sample in samples:
        families.setdefault(metric_name(sample), []).append(sample)
    lines: list[str] = []
    for name, members in families.items():  # a family's samples must stand together
        lines.append(f"# TYPE {name} {members[0].kind.value}")
        lines += [f"{name}{labels(sample)} {sample.value}" for sample in members]
    return "".join(f"{line}\n" for line in lines)


def metric_name(sample: Sample) -> str:
    suffix = "_total" if sample.kind is Kind.COUNTER else ""
    return PREFIX + sample.name.replace(".", "_") + suffix


def labels(sample: Sample) -> str:
    if not sample.tags:
        return ""
    return "{" + ",".join(f'{tag}="{escape(text)}"' for tag, text in sample.tags) + "}"


def escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

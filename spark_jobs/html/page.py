"""One page: what was found, in words; then the pictures and the tables that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from spark_jobs.html.markup import Safe, join, raw, tag
from spark_jobs.html.script import SCRIPT
from spark_jobs.html.style import STYLE

# Text of ours and pictures without any script could be framed or sent to no one; this says so to
# the browser as well.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
BAD, WARN, NOTE, GOOD = "bad", "warn", "note", "good"
WORDS = {BAD: "Act", WARN: "Look", NOTE: "Know", GOOD: "Fine"}
ORDER = (BAD, WARN, NOTE, GOOD)
MOST_FINDINGS = 15


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence. `weight` orders those of one level."""

    level: str
    text: str
    weight: float = 0.0


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the few numbers at the top."""

    value: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Block:
    title: str
    about: str
    content: Safe


@dataclass(frozen=True, slots=True)
class Section:
    """A report's part of a page."""

    key: str
    title: str
    about: str
    figures: Sequence[Figure] = ()
    findings: Sequence[Finding] = ()
    blocks: Sequence[Block] = field(default_factory=tuple)


def page(title: str, period: str, sections: Sequence[Section]) -> str:
    """With one section it is that report's page; with several there is navigation, and the
    findings of all come first."""
    several = len(sections) > 1
    found = [finding for section in sections for finding in section.findings]
    top = [_findings(found, "What was found", "findings")] if several else []
    body = join(
        tag("a", "Skip to the report", href="#main", class_="skip"),
        _header(title, period, sections if several else ()),
        tag("main", *top, *(_section(one, several) for one in sections), id="main"),
        tag("footer", f"Routemaster. All times are UTC. {period}."),
    )
    head = join(
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("title", f"{title} \u2013 {period}"),
        tag("style", raw(STYLE)),
    )
    script = tag("script", raw(SCRIPT))
    document = tag("html", tag("head", head), tag("body", body, script), lang="en")
    return f"<!doctype html>\n{document}\n"


def _header(title: str, period: str, sections: Sequence[Section]) -> Safe:
    links = [
        tag("a", "Findings", href="#findings"),
        *(tag("a", one.title, href=f"#{one.key}") for one in sections),
    ]
    navigation = tag("nav", *links, aria_label="Reports") if sections else None
    toggle = tag("button", "Dark", id="theme", type="button", hidden="hidden")
    return tag(
        "header", tag("div", tag("h1", title), tag("p", period), class_="name"), toggle, navigation
    )


def _section(section: Section, several: bool) -> Safe:
    head = join(tag("h2", section.title), tag("p", section.about, class_="about"))
    figures = [
        tag("li", tag("strong", one.value), tag("span", one.meaning)) for one in section.figures
    ]
    return tag(
        "section",
        head if several else tag("p", section.about, class_="about"),
        tag("ul", *figures, class_="figures") if figures else None,
        None if several else _findings(section.findings, "What was found", "findings"),
        *(_block(block) for block in section.blocks),
        id=section.key,
    )


def _findings(findings: Sequence[Finding], title: str, key: str) -> Safe:
    ordered = sorted(findings, key=lambda one: (ORDER.index(one.level), -one.weight, one.text))
    unique = list(dict.fromkeys(ordered))
    items = [
        tag("li", tag("b", WORDS[one.level], class_=f"badge {_css(one.level)}"), " ",
            tag("span", one.text))
        for one in unique
    ]  # fmt: skip
    first, rest = items[:MOST_FINDINGS], items[MOST_FINDINGS:]
    more = tag("details", tag("summary", f"{len(rest)} more"), tag("ul", *rest)) if rest else None
    return tag("section", tag("h2", title), tag("ul", *first), more, class_="findings", id=key)


def _css(level: str) -> str:
    return "fine" if level == GOOD else level


def _block(block: Block) -> Safe:
    about = tag("p", block.about) if block.about else None
    return tag("article", tag("h3", block.title), about, block.content)

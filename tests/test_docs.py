"""The documents are true: what README.md and INTERNALS.md name is what the code has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from routemaster.bus import assemble
from routemaster.settings import SETTINGS
from routemaster.store import scripts
from routemaster.store.keys import Keys
from routemaster.web import create_app
from routemaster.web.dashboard.pages import TABS
from routemaster.web.openapi.document import document

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
INTERNALS = (ROOT / "INTERNALS.md").read_text()
SCRIPTS = sorted(path.stem for path in (ROOT / "lua").glob("*.lua"))
HEADER_LINE = re.compile(r"^-- (KEYS|ARGV)\[(\d+)\+?\] +(\w+) +(.*)$", re.MULTILINE)


def table_rows(text: str, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, without its head."""
    section = text.split(f"\n{heading}\n", 1)[1]
    lines = re.search(r"(?:^\|.*\|\n)+", section, re.MULTILINE)
    assert lines, f"no table below {heading}"
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in lines[0].splitlines()[2:]
    ]


def any_name(key: str) -> str:
    """A key with its variable parts blanked: `topic:{name}` and `topic:{topic}` are one."""
    return re.sub(r"\{\w+\}.*", "{}", key.strip("` "))


def named_keys() -> set[str]:
    keys = Keys("ns")
    found = set()
    for name, value in vars(keys).items():
        if name in ("root", "wake_channel"):
            continue
        plain = value.removeprefix(keys.root)
        found.add(plain + "{}" if name.endswith("_prefix") else plain)
    for queue_key in ("index", "scheduled", "instant", "pending", "leases", "reclaims"):
        found.add(getattr(keys, queue_key)("").removeprefix(keys.root) + "{}")
    found.add(keys.quarantine("").removeprefix(keys.root) + "{}")
    return found


def layout_rows() -> list[list[str]]:
    return table_rows(INTERNALS, "## Data layout")


def test_every_key_is_in_the_data_layout_and_back():
    assert {any_name(row[1].split(" + ")[0]) for row in layout_rows()} == named_keys()


@pytest.mark.parametrize("column", [3, 4], ids=["added by", "removed by"])
def test_who_adds_and_removes_a_key_takes_it(column):
    wrong = []
    for row in layout_rows():
        key = any_name(row[1].split(" + ")[0])
        for name in re.findall(r"`(\w+)`", row[column]):
            if key not in keys_of(name):
                wrong.append((name, key))
    assert wrong == []


def keys_of(script: str) -> set[str]:
    """The keys in a script's header, whatever queue or lane."""
    source = (ROOT / "lua" / f"{script}.lua").read_text()
    found = {any_name(m[4].split("  ")[0]) for m in HEADER_LINE.finditer(source) if m[1] == "KEYS"}
    return {re.sub(r"^(jobs:\w+):(main|aux)$", r"\1:{}", key.split(" ")[0]) for key in found}


def test_every_script_is_an_attribute_and_in_the_table():
    listed = {name for row in table_rows(INTERNALS, "## Scripts") for name in row[0].split(", ")}
    assert SCRIPTS == sorted(scripts.Scripts.__slots__)
    assert sorted(name.strip("`") for name in listed) == SCRIPTS


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_takes_what_its_header_says(name):
    source = (ROOT / "lua" / f"{name}.lua").read_text()
    header, _, body = source.partition("\n\n")
    documented = {(m[1], int(m[2])) for m in HEADER_LINE.finditer(header)}
    used = {(kind, int(number)) for kind, number in re.findall(r"(KEYS|ARGV)\[(\d+)\]", body)}
    spread = re.search(r"FIRST = (\d+)", body)
    if spread:
        used.add(("ARGV", int(spread[1])))
    loop = re.search(r"for i = (\d+), (\d+) do\n  must_be\('hash', KEYS\[i\]\)", body)
    if loop:
        used |= {("KEYS", n) for n in range(int(loop[1]), int(loop[2]) + 1)}
    assert documented == used
    assert header.startswith("#!lua")
    assert re.search(r"^-- Returns ", header, re.MULTILINE)
    assert re.search(r"One script, because|^-- One script", header, re.MULTILINE)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_keeps_the_rules(name):
    source = scripts.Script.read(ROOT / "lua", name).source
    assert "pcall" not in source
    assert not re.search(r"redis\.call\('(KEYS|SCAN|EVAL|FLUSH)", source)
    assert source.count("#!lua") == 1


def test_the_settings_table_is_the_settings():
    def default(row):
        shown = f"`{row.default}`" if row.default else "none"
        differs = row.production != row.default
        return shown + (f", in production `{row.production}`" if differs else "")

    expected = [[f"`{row.env}`", default(row), row.doc] for row in SETTINGS]
    assert table_rows(README, "## Settings") == expected


def test_the_api_table_is_the_api(settings):
    app = create_app(assemble(settings))
    served = {
        f"{method} {re.sub(r'<(?:name|topic|token|bid)>', ':x', rule.rule)}"
        for rule in app.url_map.iter_rules()
        if not rule.rule.startswith("/dashboard")  # pages for people, see below
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    described = {
        f"{method.upper()} {re.sub(r'{[a-z]+}', ':x', path)}"
        for path, methods in document(settings)["paths"].items()
        for method in methods
    }
    assert described == served
    documented = set()
    for row in table_rows(README, "## API"):
        method = "GET"
        for word in re.findall(r"`([^`]*)`", row[0]):
            verb, _, path = word.rpartition(" ") if not word.startswith("{") else ("", "", "")
            method = verb or method
            if path.startswith("/"):
                documented.add(f"{method} {re.sub(r':[a-z]+', ':x', path)}")
    assert documented == served


def test_the_dashboards_table_is_its_pages(settings):
    tabs = [f"`{tab.path}`" for tab in TABS]
    assert [row[0] for row in table_rows(README, "## Dashboard")] == tabs

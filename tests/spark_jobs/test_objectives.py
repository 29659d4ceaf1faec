from __future__ import annotations

import fnmatch
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.objectives import BadObjectives, Objective, Objectives, as_regex, load, parse

EXAMPLE = Path(__file__).parents[2] / "spark_jobs" / "slo.toml"


def test_without_a_word_it_is_999_in_a_thousand_within_five_seconds():
    assert parse("") == Objectives(Objective(99.9, 5.0), ())


def test_an_override_says_only_what_differs():
    found = parse("""
        default = {target_percent = 99, within_seconds = 10}
        override = [{subscriber = "reports-*", within_seconds = 300}]
    """)

    assert found.overrides == (Objective(99.0, 300.0, "reports-*"),)


def test_the_example_is_good():
    found = load(EXAMPLE)

    assert [one.subscriber for one in found.overrides] == ["*-analytics", "*-archive"]
    assert found.overrides[0] == Objective(99.0, 300.0, "*-analytics")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("default = 5", "default must be a table"),
        ("[default]\ntarget_percent = 100", "default.target_percent must be a number above 0 and"),
        ("[default]\ntarget_percent = nan", "default.target_percent must be a number"),
        ("[default]\ntarget_percent = true", "default.target_percent must be a number"),
        ("[default]\nwithin_seconds = '5'", "default.within_seconds must be a number above 0"),
        ("[default]\nwithin_seconds = 0", "default.within_seconds must be a number above 0"),
        ("[default]\nwithin_seconds = 1e9", "at most 2678400 (31 days)"),
        ("[default]\nwithin = 5", "default.within is not known; there are target_percent"),
        ("[defaults]", "defaults is not known; there are default, override"),
        ("override = 1", "override must be [[override]] tables"),
        ("override = [1]", "override[0].subscriber must be a name"),
        ("[[override]]\nwithin_seconds = 5", "override[0].subscriber must be a name"),
        ("[[override]]\nsubscriber = 'a'\ntarget_percent = -1", "override[0].target_percent must"),
        ("[default", "is not TOML"),
    ],
)
def test_a_bad_file_is_told_by_its_field(text, said):
    with pytest.raises(BadObjectives, match=re.escape(said)):
        parse(text)


def test_a_file_that_cannot_be_read_is_told_by_its_name(tmp_path):
    with pytest.raises(BadObjectives, match="missing.toml: No such file"):
        load(tmp_path / "missing.toml")
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(BadObjectives, match="latin.toml: is not UTF-8"):
        load(tmp_path / "latin.toml")


def python_regex(glob: str) -> str:
    """Java writes a character by its number as \\x{e9}, Python as \\u00e9."""
    return re.sub(r"\\x\{([0-9a-f]+)\}", lambda m: rf"\U{m[1]:0>8}", as_regex(glob))[:-2] + r"\Z"


@given(st.text("ab-*?.", max_size=6), st.text("ab-.", max_size=6))
def test_a_glob_fits_what_a_shell_would_say_it_fits(glob, name):
    assert bool(re.search(python_regex(glob), name)) == fnmatch.fnmatchcase(name, glob)

"""The deliberate bugs fit the code as it is; that they are caught is `make mutants`."""

from __future__ import annotations

import pytest

from tests.faults.mutants import CHECKOUT, Mutant, mutants


def test_there_are_some():
    assert len(mutants()) >= 10


@pytest.mark.parametrize("mutant", mutants(), ids=lambda mutant: mutant.path.stem)
def test_a_mutant_applies_and_names_its_tests(mutant: Mutant):
    applied = mutant.apply(CHECKOUT, "--check")
    assert applied.returncode == 0, applied.stderr
    named = [word for word in mutant.tests if word.startswith("tests/")]
    assert named and all((CHECKOUT / name).exists() for name in named)

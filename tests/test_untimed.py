"""Law 15: no test is timed. A slow machine takes longer, and fails nothing; a tier may try less."""

import re
from pathlib import Path

import pytest
from examples import LEAST, number
from hypothesis import HealthCheck, settings

TESTS = Path(__file__).parent
LEAST_SECONDS = 600
"""A limit on a process is there to end one that hangs, on the slowest machine too."""


def lines():
    for path in sorted(TESTS.rglob("*.py")):
        if path != Path(__file__):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                yield f"{path.relative_to(TESTS)}:{number}", line


def test_properties_have_no_deadline_and_may_be_slow():
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check


def test_no_property_sets_its_number_of_examples_by_itself():
    """A tier could not lower it."""
    given = {
        place.partition(":")[0] for place, line in lines() if re.search(r"max_examples ?=", line)
    }
    assert given == {"conftest.py", "helpers/examples.py"}


@pytest.mark.parametrize(
    ("share", "n", "tried"), [(None, 60, 60), ("1", 60, 60), ("0.2", 61, 13), ("0.2", 20, LEAST)]
)
def test_a_tier_lowers_the_number_of_examples(monkeypatch, share, n, tried):
    monkeypatch.delenv("SRS_OOC_EXAMPLES", raising=False)
    if share is not None:
        monkeypatch.setenv("SRS_OOC_EXAMPLES", share)
    assert number(n) == tried
    assert number(3) == 3


def test_no_property_brings_a_deadline_back():
    given = [
        (place, found) for place, line in lines() for found in re.findall(r"\bdeadline=(\w+)", line)
    ]
    assert given
    assert [place for place, found in given if found != "None"] == []


def test_limits_on_processes_only_catch_hangs():
    """Those of a random moment to kill at, which expire on purpose, are no plain numbers."""
    given = [
        (place, int(found))
        for place, line in lines()
        for found in re.findall(r"\btimeout=(\d+)\b", line)
    ]
    assert [place for place, seconds in given if seconds < LEAST_SECONDS] == []

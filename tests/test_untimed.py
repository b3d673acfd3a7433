"""Law 15: no test is timed. A slow machine takes longer, and fails nothing."""

import re
from pathlib import Path

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

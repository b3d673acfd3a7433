"""The list of faults to put back is of today's code."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
FAULTS = tomllib.loads((ROOT / "benchmarks/research/put_back.toml").read_text("utf-8"))["fault"]

pytestmark = pytest.mark.research


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if "why" not in fault])
def test_what_a_fault_replaces_stands_once(fault: dict[str, Any]) -> None:
    for change in fault["changes"]:
        text = (ROOT / "srs_ooc" / change["file"]).read_text("utf-8")
        assert text.count(change["stands"]) == 1, (fault["entry"], change["file"])
        assert change["put"] != change["stands"]
    for test in fault["tests"]:
        assert (ROOT / "tests" / test.partition("::")[0]).exists(), test


def test_each_fault_is_an_entry_of_the_changelog() -> None:
    changelog = " ".join((ROOT / "CHANGELOG.md").read_text("utf-8").split())
    assert [fault["entry"] for fault in FAULTS if fault["entry"] not in changelog] == []

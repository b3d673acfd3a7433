"""The promises of docs/reliability.md are held by tests that exist."""

import ast
import re
from pathlib import Path

import pytest
from offenders import assert_none

pytestmark = pytest.mark.documents

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "reliability.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


def functions_of(file):
    """The names of a file's functions, and of what it assigns: tests are made by functions, too."""
    body = ast.parse((TESTS / file).read_text()).body
    made = {ast.unparse(node.targets[0]) for node in body if isinstance(node, ast.Assign)}
    return made | {node.name for node in body if isinstance(node, ast.FunctionDef)}


def test_the_tests_named_are_there():
    files = {file for file, _ in NAMED}
    there = {file: functions_of(file) for file in files if (TESTS / file).exists()}
    assert_none(
        {
            f"{file}::{name}": name not in there.get(file, ()) and "no such test"
            for file, name in NAMED
        }
    )


def test_every_promise_names_a_test_or_says_that_there_is_none():
    rows = [line for line in PAGE.splitlines() if line.startswith("| **")]
    assert len(rows) > 20
    assert [row for row in rows if ".py::test_" not in row and "| none yet |" not in row] == []

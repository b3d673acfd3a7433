"""The promises of docs/reliability.md are held by tests that exist."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "reliability.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "name"), NAMED, ids=map("::".join, NAMED))
def test_the_test_named_is_there(file, name):
    tree = ast.parse((TESTS / file).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_promise_names_a_test_or_says_that_there_is_none():
    rows = [line for line in PAGE.splitlines() if line.startswith("| **")]
    assert len(rows) > 20
    assert [row for row in rows if ".py::test_" not in row and "| none yet |" not in row] == []

"""Estimators are fitted by the hundred here: their closing stages are short, unless asked."""

import pytest
from closing import ALL, FEW, closing_trees


@pytest.fixture(autouse=True)
def _few_closing_trees(monkeypatch):
    closing_trees(monkeypatch, FEW)


@pytest.fixture
def all_closing_trees(monkeypatch):
    """As the command line has them."""
    closing_trees(monkeypatch, ALL)

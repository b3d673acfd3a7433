"""Shift and imbalance: some means differ between the classes, and nothing else does."""

import numpy as np
import pytest

from srs_ooc.base.errors import UsageError
from srs_ooc.synthetic.problem_tables import rows
from srs_ooc.synthetic.problems import Imbalance, Shift, Shifted

KINDS = [Shift(8000, 60, 20, 0, 0.7), Imbalance(8000, 60, 20, 0, 0.7, 0.2)]


@pytest.mark.parametrize("problem", KINDS, ids=lambda problem: problem.name)
def test_the_shifted_features_are_shifted_and_no_other(problem: Shifted) -> None:
    labels = problem.target(0, problem.n_rows)
    table = rows(problem, 0, problem.n_rows)
    difference = table[labels == 1].mean(axis=0) - table[labels == 0].mean(axis=0)
    relevant = np.isin(np.arange(60), problem.truth().relevant)
    assert relevant.sum() == 20
    np.testing.assert_allclose(np.abs(difference[relevant]), 0.7, atol=0.12)
    assert np.abs(difference[~relevant]).max() < 0.12
    assert 3 < (difference[relevant] > 0).sum() < 17
    assert np.abs(table[labels == 0].std(axis=0) - 1).max() < 0.05
    assert np.abs(table[labels == 1].std(axis=0) - 1).max() < 0.08


@pytest.mark.parametrize(
    ("problem", "n_ones"),
    [(Shift(72, 5, 1, 0), 36), (Imbalance(1000, 5, 1, 0), 50), (Imbalance(3, 5, 1, 0), 1)],
    ids=["shift", "imbalance", "one row at least"],
)
def test_classes_have_their_shares_in_random_order(problem: Shifted, n_ones: int) -> None:
    labels = problem.target(0, problem.n_rows)
    assert labels.sum() == n_ones
    assert labels.tolist() not in (sorted(labels), sorted(labels)[::-1]) or problem.n_rows < 9


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (Shift, {"size": 0.0}, "--size: expected a number above 0 and at most 5, found 0"),
        (Shift, {"size": float("nan")}, "--size"),
        (Imbalance, {"size": 5.5}, "--size"),
        (Imbalance, {"share": 0.0}, "--share: expected a number above 0 and at most 0.5, found 0"),
        (Imbalance, {"share": 0.6}, "--share"),
        (Shift, {"n_relevant": 0}, "--relevant"),
    ],
)
def test_impossible_shifts_are_refused(
    kind: type[Shifted], change: dict[str, float], message: str
) -> None:
    good = {"n_rows": 10, "n_features": 50, "n_relevant": 2, "seed": 0}
    with pytest.raises(UsageError, match=message):
        kind(**good | change)


FIXED = {
    "relevant": (1, 3),
    "labels": [1, 1, 0, 0, 0, 1],
    "cells": [[-0.4417, 1.5616, -1.9375, 2.0471], [1.2074, 1.3249, 0.2938, 0.3204]],
}


def test_fixed_vectors() -> None:
    problem = Shift(6, 8, 2, 0)
    assert problem.truth().relevant == FIXED["relevant"]
    assert problem.target(0, 6).tolist() == FIXED["labels"]
    assert rows(problem, 0, 2)[:, :4].tolist() == FIXED["cells"]

"""Linear: heavy-tailed features, a few of which add up to the class."""

import numpy as np
import pytest

from srs_ooc.base.errors import UsageError
from srs_ooc.synthetic.problem_tables import rows
from srs_ooc.synthetic.problems import Linear


def test_the_tails_are_those_of_half_a_t_with_two_degrees() -> None:
    table = np.abs(rows(Linear(2000, 100, 1, 0), 0, 2000))
    for value in (0.5, 2.0, 5.0, 9.0):
        beyond = 1 - 2 * value / np.sqrt(2 + 4 * value**2)
        assert (table > value).mean() == pytest.approx(beyond, rel=0.12)
    assert 0 < (table == table.max()).mean() < 0.004  # cut at the largest cell


def test_the_class_is_told_by_the_relevant_features_and_by_no_other() -> None:
    problem = Linear(4000, 300, 5, 1)
    labels = problem.target(0, 4000)
    higher = rows(problem, 0, 4000) > 0
    agreement = np.abs((higher == labels[:, None]).mean(axis=0) - 0.5)
    relevant = np.isin(np.arange(300), problem.truth().relevant)
    assert agreement[relevant].min() > 0.08
    assert agreement[~relevant].max() < 0.04
    assert abs(labels.mean() - 0.5) < 0.03


def test_directions_differ() -> None:
    problem = Linear(3000, 40, 20, 2)
    relevant = rows(problem, 0, 3000)[:, list(problem.truth().relevant)]
    agreement = ((relevant > 0) == problem.target(0, 3000)[:, None]).mean(axis=0)
    assert 3 < (agreement > 0.5).sum() < 17


@pytest.mark.parametrize("n_relevant", [0, 11])
def test_a_number_of_relevant_features_out_of_range_is_refused(n_relevant: int) -> None:
    with pytest.raises(UsageError, match=f"--relevant: expected 1 to 10 .* found {n_relevant}"):
        Linear(10, 10, n_relevant, 0)


FIXED = {
    "relevant": (1, 3, 7),
    "labels": [0, 0, 1, 1, 0, 1],
    "cells": [[0.8544, -0.0784, -0.2625, 3.0956], [0.2117, -0.384, -0.7001, 0.9484]],
}


def test_fixed_vectors() -> None:
    problem = Linear(6, 8, 3, 0)
    assert problem.truth().relevant == FIXED["relevant"]
    assert problem.target(0, 6).tolist() == FIXED["labels"]
    assert rows(problem, 0, 2)[:, :4].tolist() == FIXED["cells"]

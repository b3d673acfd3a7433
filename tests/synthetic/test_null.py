"""Noise: nothing is relevant, in independent features or in blocks."""

import numpy as np
import pytest

from srs_ooc.synthetic.problem_tables import rows
from srs_ooc.synthetic.problems import Noise


@pytest.mark.parametrize("blocks", [False, True])
def test_no_feature_tells_anything_of_the_class(blocks: bool) -> None:
    problem = Noise(3000, 200, 0, blocks)
    labels = problem.target(0, 3000)
    table = rows(problem, 0, 3000)
    scores = (table[labels == 1].mean(axis=0) - table[labels == 0].mean(axis=0)) * np.sqrt(750)
    assert np.abs(scores).max() < 4.5
    assert problem.truth().relevant == ()
    assert labels.sum() == 1500


def test_blocks_hold_neighbours_that_go_together() -> None:
    table = rows(Noise(2000, 60, 1, blocks=True), 0, 2000)
    near = [np.corrcoef(table[:, j], table[:, j + 1])[0, 1] for j in range(59)]
    inside = [r for j, r in enumerate(near) if (j + 1) % 20]
    assert min(inside) > 0.85
    assert max(abs(near[19]), abs(near[39])) < 0.1
    plain = rows(Noise(2000, 60, 1), 0, 2000)
    assert np.abs(np.corrcoef(plain.T) - np.eye(60)).max() < 0.12


FIXED = {
    "labels": [0, 0, 0, 1, 1, 1],
    "cells": [[0.4995, 0.5059, 0.4018, -0.9014], [-1.3087, -1.0721, 0.3521, 1.0267]],
}


def test_fixed_vectors() -> None:
    problem = Noise(6, 25, 0, blocks=True)
    assert problem.target(0, 6).tolist() == FIXED["labels"]
    assert rows(problem, 0, 2)[:, [0, 1, 19, 20]].tolist() == FIXED["cells"]

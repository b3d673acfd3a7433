"""Neighbours on a grid: the fused penalty of Eq. 20, by its formula, and where it applies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.errors import UsageError
from srs_ooc.samplers.prs import Prs
from srs_ooc.samplers.prs_math import grid_of, roughness, roughness_slopes


def neighbours(height, width):
    for j in range(height):
        for k in range(width):
            if j + 1 < height:
                yield (j, k), (j + 1, k)
            if k + 1 < width:
                yield (j, k), (j, k + 1)


@given(
    height=st.integers(1, 5),
    width=st.integers(1, 5),
    seed=st.integers(0, 1000),
    n_more=st.integers(0, 3),
)
def test_value_and_slopes_are_those_of_the_formula(height, width, seed, n_more):
    rng = np.random.default_rng(seed)
    n_features = height * width + n_more  # some are no pixels
    positions = rng.permutation(n_features)
    offered = np.sort(rng.choice(n_features, height * width, replace=False))
    grid = grid_of((height, width), offered, positions)
    in_table = positions[grid].ravel()
    assert in_table.tolist() == sorted(in_table)
    beta = rng.choice([0.0, 0.25, 0.5, 1.0], n_features)
    value, slopes = 0.0, np.zeros(n_features)
    for one, other in neighbours(height, width):
        a, b = grid[one], grid[other]
        value += abs(beta[a] - beta[b])
        slopes[a] += np.sign(beta[a] - beta[b])
        slopes[b] += np.sign(beta[b] - beta[a])
    assert roughness(beta, grid) == pytest.approx(value, abs=1e-12)
    assert roughness_slopes(beta, grid, 0.5).tolist() == (0.5 * slopes).tolist()


@pytest.mark.parametrize("text", ["28", "0x4", "ax4", "3x4x5", "-2x4", "9" * 12 + "x1"])
def test_a_grid_is_two_numbers(text):
    with pytest.raises(UsageError, match="--grid: expected HEIGHTxWIDTH"):
        Prs.settle({"grid": text}, None)


def test_options_that_do_not_fit_are_refused_with_the_numbers():
    assert Prs.settle({"grid": "03X4"}, None).grid == "3x4"
    with pytest.raises(UsageError, match="--smoothness: expected with --grid"):
        Prs.settle({"smoothness": 0.1}, None)
    with pytest.raises(UsageError, match=r"3 x 4 = 12 and 11 features"):
        Prs.settle({"grid": "3x4"}, None).check(100, 11, 11)

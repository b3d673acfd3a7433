"""The normal numbers are normal, also far in the tails."""

from statistics import NormalDist

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.synthetic.problem_tables import hash_grid, noise_cells, normals, uniforms


@given(st.integers(0, 2**64 - 1))
def test_inversion_agrees_with_the_quantile_function(word: int) -> None:
    tail = (word % 2**52 + 0.5) * 2.0**-53
    expected = NormalDist().inv_cdf(tail) * (1 if word < 2**63 else -1) * -1
    assert abs(float(normals(np.array([word], dtype=np.uint64))[0]) - expected) < 1e-5


def test_moments_and_tails() -> None:
    values = normals(hash_grid(11, np.arange(1000), np.arange(1000))).ravel()
    assert abs(values.mean()) < 0.005
    assert abs(values.std() - 1) < 0.005
    for z in (0.5, 1.0, 2.0, 3.0, 4.0):
        expected = len(values) * NormalDist().cdf(-z)
        assert abs((values > z).sum() - expected) < 5 * np.sqrt(expected)
        assert abs((values < -z).sum() - expected) < 5 * np.sqrt(expected)


def test_cells_of_neighbours_are_uncorrelated() -> None:
    cells = noise_cells(5, 0, 400, np.arange(400, dtype=np.uint32)).astype(float)
    for left, right in ((cells[:, :-1], cells[:, 1:]), (cells[:-1], cells[1:])):
        assert abs(np.corrcoef(left.ravel(), right.ravel())[0, 1]) < 0.0125


def test_uniforms_stay_in_range_and_fill_it() -> None:
    extremes = uniforms(np.array([0, 2**64 - 1], dtype=np.uint64))
    assert extremes[0] == -1
    assert 0.999999 < extremes[1] < 1

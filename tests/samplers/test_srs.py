"""Subspaces are Algorithm 1's: R from F, C from the rest, of exact sizes."""

from fractions import Fraction

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from tree_reference import draw_distinct

from srs_ooc.base.seeds import Purpose, derive
from srs_ooc.samplers.draws import Drawing
from srs_ooc.samplers.srs import KeptSet


@examples(60)
@given(
    st.integers(1, 400),
    st.integers(1, 400),
    st.sampled_from(["0", "0.1", "0.29", "0.5", "0.999", "1"]),
    st.integers(0, 50),
    st.integers(0, 2**64 - 1),
    st.integers(1, 40),
)
def test_a_subspace_holds_r_of_f_and_fresh_others(n_features, q, alpha, n_kept, key, g):
    q, n_kept = min(q, n_features), min(n_kept, n_features)
    g = min(g, q)
    kept = np.random.default_rng(n_kept).permutation(n_features)[:n_kept].astype(np.uint32)
    sampler = Drawing(n_features, q, alpha, draw_block=g)
    subspace = sampler.draw(kept, key)
    assert len(np.unique(subspace)) == q
    assert (np.diff(subspace.astype(np.int64)) > 0).all()
    n_retained = min(int(Fraction(alpha) * q // 1), n_kept)
    assert len(np.intersect1d(subspace, kept)) >= n_retained
    sequence = draw_distinct(derive(key, Purpose.SEQUENCE), n_features, np.zeros(0, np.uint32), q)
    if n_retained == 0 and g == 1:
        np.testing.assert_array_equal(np.sort(sequence), subspace)


def test_floor_of_alpha_q_is_taken_on_the_decimal_text():
    """0.29 x 100 is 28.999999999999996 in binary floating point."""
    assert Drawing(1000, 100, "0.29").n_held == 29


@pytest.mark.parametrize("g", [1, 7])
def test_r_and_c_are_uniform(g):
    """Every member of F, and every other feature, is drawn equally often (alpha q < |F|)."""
    kept = np.arange(0, 40, 2, dtype=np.uint32)
    counts = np.zeros(100)
    sampler = Drawing(100, 20, "0.5", draw_block=g)
    n = 6000
    for key in range(n):
        counts[sampler.draw(kept, derive(11, key))] += 1
    # A member is in R with probability 10/20, else in C with probability 10/90.
    p_kept, p_other = 0.5 + 0.5 * 10 / 90, 10 / 90
    others = np.setdiff1d(np.arange(100), kept)
    for members, p in ((kept, p_kept), (others, p_other)):
        spread = np.sqrt(n * p * (1 - p))
        assert np.abs(counts[members] - n * p).max() < 4.5 * spread


@pytest.mark.parametrize("g", [1, 6])
def test_excluded_features_are_never_drawn(g):
    candidates = np.arange(1, 100, 3, dtype=np.uint32)
    sampler = Drawing(len(candidates), 20, "0.5", candidates, g)
    kept = candidates[:7]
    for key in range(50):
        subspace = sampler.draw(kept, key)
        assert np.isin(subspace, candidates).all()
        assert len(np.unique(subspace)) == 20
        assert np.isin(kept, subspace).all()


def test_the_kept_set_remembers_members_order_and_entry():
    kept = KeptSet(1000)
    kept.add(np.array([999, 0, 7], dtype=np.uint32), 4)
    kept.add(np.arange(100, 300, dtype=np.uint32), 9)
    assert kept.n == 203
    assert kept.features[:3].tolist() == [999, 0, 7]
    assert kept.holds(np.array([7, 8, 299, 300], dtype=np.uint32)).tolist() == [1, 0, 1, 0]
    assert [kept.n_before(t) for t in (0, 3, 4, 8, 9)] == [0, 0, 3, 3, 203]


@pytest.mark.parametrize("size", [1, 8, 63, 65])
def test_the_kept_set_can_hold_every_feature(size):
    kept = KeptSet(size)
    kept.add(np.arange(size, dtype=np.uint32), 1)
    assert kept.holds(np.arange(size, dtype=np.uint32)).all()
    assert kept.n == size

"""Permutations of rows keep strata and groups, and are uniform over what is allowed."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.base.errors import UsageError
from srs_ooc.evidence.involutions import Exchangeability, involution


@given(st.integers(0, 2**64 - 1), st.integers(1, 60))
def test_an_involution_pairs_all_rows_but_one_of_an_odd_number(key, n_rows):
    partners = involution(key, n_rows)
    np.testing.assert_array_equal(partners[partners], np.arange(n_rows))
    assert np.count_nonzero(partners == np.arange(n_rows)) == n_rows % 2


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 3), min_size=1, max_size=60))
def test_rows_stay_in_their_stratum(key, strata):
    strata = np.array(strata, dtype=np.int32)
    rows = Exchangeability(len(strata), strata)
    for moved in (rows.involution(key), rows.permutation(key)):
        np.testing.assert_array_equal(strata[moved], strata)
    fixed = np.count_nonzero(rows.involution(key) == np.arange(len(strata)))
    assert fixed == sum(n % 2 for n in Counter(strata.tolist()).values())


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 9), min_size=1, max_size=60), st.data())
def test_groups_move_whole_in_order_and_only_with_their_like(key, groups, data):
    groups = np.array(groups, dtype=np.int32)
    strata = np.array(
        data.draw(st.lists(st.integers(0, 1), min_size=len(groups), max_size=len(groups))),
        dtype=np.int32,
    )
    rows = Exchangeability(len(groups), strata, groups)
    involuted = rows.involution(key)
    np.testing.assert_array_equal(involuted[involuted], np.arange(len(groups)))
    for moved in (involuted, rows.permutation(key)):
        np.testing.assert_array_equal(strata[moved], strata)
        np.testing.assert_array_equal(np.sort(moved), np.arange(len(groups)))
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            source = moved[members]
            whole = np.flatnonzero(groups == groups[source[0]])
            np.testing.assert_array_equal(source, whole)


def test_involutions_are_uniform_over_pairings():
    counts = Counter(tuple(involution(key, 4).tolist()) for key in range(3000))
    assert len(counts) == 3
    assert sum((n - 1000) ** 2 / 1000 for n in counts.values()) < 2 + 5 * np.sqrt(2 * 2)


def test_permutations_are_uniform():
    rows = Exchangeability(4, np.array([0, 0, 0, 1], dtype=np.int32))
    counts = Counter(tuple(rows.permutation(key).tolist()) for key in range(3000))
    assert len(counts) == 6
    assert sum((n - 500) ** 2 / 500 for n in counts.values()) < 5 + 5 * np.sqrt(2 * 5)


def test_strata_that_pin_the_rows_are_refused():
    Exchangeability(9).check()
    Exchangeability(100, np.repeat(np.arange(4, dtype=np.int32), 25)).check()
    pinned = Exchangeability(30, np.arange(30, dtype=np.int32) // 3)
    with pytest.raises(UsageError, match="found 20 of 30: a row needs a partner"):
        pinned.check()


@pytest.mark.parametrize(("sizes", "moved"), [((40,), 0), ((13, 13, 13), 26), ((10, 20), 0)])
def test_groups_without_partners_are_refused(sizes, moved):
    groups = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    rows = Exchangeability(len(groups), None, groups)
    assert np.count_nonzero(rows.involution(5) != np.arange(len(groups))) == moved
    with pytest.raises(UsageError, match=f"found {moved} of {len(groups)}"):
        rows.check()

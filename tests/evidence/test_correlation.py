"""The order by worth, the correlations it rests on, and clusters of features that are alike."""

from fractions import Fraction

import numpy as np
import pytest
from examples import examples, given, st

from srs_ooc.evidence import correlation
from srs_ooc.evidence.correlation import (
    RankColumns,
    leader_clustering,
    mrmr_order,
    sampled_rows,
    single_linkage,
)

MISSING = 255


def made_codes(seed, n, n_rows, n_levels=9):
    """Return codes of features some of which are alike."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_levels, (n, n_rows)).astype(np.uint8)
    for copy in range(1, n, 3):
        swapped = rng.random(n_rows) < 0.2
        codes[copy] = np.where(swapped, codes[copy], codes[copy - 1])
    return codes


def slow_squares(codes):
    """Squared correlations one by one, as numpy has them; a missing code is the mean."""
    filled = codes.astype(np.float64)
    for row in filled:
        is_missing = row == MISSING
        row[is_missing] = row[~is_missing].mean()
    return np.corrcoef(filled) ** 2


def slow_order(importance, squares):
    """The order by worth, from its definition."""
    left, order = list(range(len(importance))), []
    while left:
        explained = [max((squares[i, j] for j in order), default=0.0) for i in left]
        worth = [importance[i] * np.sqrt(1 - r2) for i, r2 in zip(left, explained, strict=True)]
        order.append(left.pop(int(np.argmax(worth))))
    return order


@examples(30)
@given(st.integers(0, 999), st.integers(2, 20), st.sampled_from([5, 40]), st.booleans())
def test_correlations_are_those_of_numpy(seed, n, n_rows, has_missing):
    codes = made_codes(seed, n, n_rows)
    codes[:, 0], codes[:, 1] = 3, 4  # none is constant
    if has_missing:
        codes[::2, 2] = MISSING
    places = np.arange(n)
    found = RankColumns(codes, MISSING).squared(places, places)
    np.testing.assert_allclose(found, slow_squares(codes), atol=1e-12)


def test_correlations_do_not_depend_on_the_pieces_they_are_computed_in(monkeypatch):
    columns = RankColumns(made_codes(1, 40, 30), MISSING)
    places = np.arange(40)
    whole = columns.squared(places, places)
    monkeypatch.setattr(correlation, "CELLS", 300)
    pieces = columns.pieces(40)
    assert len(pieces) > 3
    again = [[columns.squared(places[i], places[j]) for j in pieces] for i in pieces]
    np.testing.assert_array_equal(np.block(again), whole)
    importance = np.random.default_rng(2).random(40)
    order = mrmr_order(importance, columns, places, 5)
    monkeypatch.undo()
    np.testing.assert_array_equal(mrmr_order(importance, columns, places, 5), order)


def test_a_constant_column_is_correlated_with_nothing():
    codes = made_codes(2, 4, 20)
    codes[1] = 7
    codes[2] = MISSING
    squares = RankColumns(codes, MISSING).squared(np.arange(4), np.arange(4))
    assert not squares[1:3].any()
    assert not squares[:, 1:3].any()
    assert squares[0, 0] == squares[3, 3] == 1.0


def test_no_more_rows_are_taken_than_it_is_made_for():
    rows = sampled_rows(10 * correlation.MOST_ROWS)
    assert len(rows) == correlation.MOST_ROWS == len(np.unique(rows))
    assert sampled_rows(7).tolist() == list(range(7))
    with pytest.raises(ValueError, match="at most 4096 rows, found 4097"):
        RankColumns(np.zeros((1, 4097), np.uint8), MISSING)


@examples(40)
@given(st.integers(0, 999), st.integers(1, 25))
def test_the_order_is_that_of_its_definition(seed, n):
    codes = made_codes(seed, n, 31)
    importance = np.random.default_rng(seed).random(n)
    order = mrmr_order(importance, RankColumns(codes, MISSING), np.arange(n), 5)
    squares = RankColumns(codes, MISSING).squared(np.arange(n), np.arange(n))
    assert order.tolist() == slow_order(importance, squares)


@examples(40)
@given(st.integers(0, 999), st.integers(1, 25), st.randoms(use_true_random=False))
def test_the_order_is_a_permutation_that_follows_rows_and_features(seed, n, random):
    codes = made_codes(seed, n, 24)
    features = np.arange(n) * 7
    importance = np.random.default_rng(seed).integers(-1, 4, n).astype(np.float64)
    order = mrmr_order(importance, RankColumns(codes, MISSING), features, 5)
    assert sorted(order.tolist()) == list(range(n))
    rows, places = list(range(24)), list(range(n))
    random.shuffle(rows)
    random.shuffle(places)
    moved = RankColumns(codes[np.ix_(places, rows)], MISSING)
    again = mrmr_order(importance[places], moved, features[places], 5)
    assert features[places][again].tolist() == features[order].tolist()


@examples(40)
@given(st.integers(0, 999), st.integers(3, 20), st.integers(0, 19))
def test_a_copy_comes_after_all_that_tell_something(seed, n, which):
    codes = np.random.default_rng(seed).integers(0, 9, (n, 60)).astype(np.uint8)
    twin = np.vstack([codes, codes[[which % n]]])
    importance = np.random.default_rng(seed).random(n + 1) + 0.01
    importance[n] = importance[which % n]
    order = mrmr_order(importance, RankColumns(twin, MISSING), np.arange(n + 1), 5).tolist()
    assert order[-1] in (which % n, n)


@examples(30)
@given(st.integers(0, 999), st.integers(1, 25))
def test_the_selected_come_first_in_their_own_order(seed, n):
    rng = np.random.default_rng(seed)
    codes, importance, is_selected = made_codes(seed, n, 31), rng.random(n), rng.random(n) < 0.4
    order = mrmr_order(importance, RankColumns(codes, MISSING), np.arange(n), 5, is_selected)
    assert sorted(order.tolist()) == list(range(n))
    n_selected = np.count_nonzero(is_selected)
    assert is_selected[order[:n_selected]].all()
    alone = RankColumns(codes[is_selected], MISSING)
    places = np.flatnonzero(is_selected)
    expected = places[mrmr_order(importance[places], alone, places, 5)]
    assert order[:n_selected].tolist() == expected.tolist()


@examples(40)
@given(st.integers(0, 999), st.integers(1, 30), st.sampled_from([0.3, 0.6, 0.9]), st.booleans())
def test_every_member_can_stand_in_for_its_representative(seed, n, least, in_pieces):
    codes = made_codes(seed, n, 40)
    order = np.random.default_rng(seed).permutation(n)
    columns = RankColumns(codes, MISSING)
    squares = columns.squared(np.arange(n), np.arange(n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(correlation, "CELLS", 121 if in_pieces else 1 << 18)
        leader = leader_clustering(columns, order, least)
    leaders: list[int] = []
    for place in order.tolist():
        near = [squares[place, other] for other in leaders]
        if near and max(near) >= least * least:
            assert leader[place] == leaders[int(np.argmax(near))]
        else:
            leaders.append(place)
            assert leader[place] == place
    assert set(leader.tolist()) == set(leaders)


def test_what_is_not_clustered_has_no_representative():
    columns = RankColumns(made_codes(3, 6, 20), MISSING)
    leader = leader_clustering(columns, np.array([4, 1]), 0.5)
    assert leader[[0, 2, 3, 5]].tolist() == [-1] * 4
    assert leader[4] == 4


def exact_square(first, second):
    """The squared correlation as a fraction, a missing code as the mean of what is known."""
    columns = []
    for column in (first, second):
        known = [int(code) for code in column if code != MISSING]
        mean = Fraction(sum(known), max(len(known), 1))
        columns.append([Fraction(0) if c == MISSING else int(c) - mean for c in column])
    both = sum(a * b for a, b in zip(*columns, strict=True))
    spreads = [sum(a * a for a in column) for column in columns]
    return both * both / (spreads[0] * spreads[1]) if all(spreads) else Fraction(0)


@examples(40)
@given(st.integers(0, 9999), st.sampled_from([8, 16, 64]), st.booleans())
def test_a_tie_at_a_half_is_found_exactly(seed, n_rows, has_missing):
    rng = np.random.default_rng(seed)
    codes = np.zeros((12, n_rows), np.uint8)
    for i in range(0, 12, 2):
        codes[i] = rng.permutation(np.arange(n_rows) % 2)
        codes[i + 1] = codes[i]
        for value in (0, 1):
            changed = rng.permutation(np.flatnonzero(codes[i] == value))[: n_rows // 8]
            codes[i + 1, changed] = 1 - value
    if has_missing:
        codes[rng.random(codes.shape) < 0.1] = MISSING
    found = np.sqrt(RankColumns(codes, MISSING).squares())
    exact = [[exact_square(first, second) for second in codes] for first in codes]
    expected = np.array([[square >= Fraction(1, 4) for square in row] for row in exact])
    np.testing.assert_array_equal(found >= 0.5, expected)
    np.testing.assert_allclose(found**2, np.array(exact, float), atol=1e-12)


def test_features_correlated_directly_or_through_others_are_one_cluster():
    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.standard_normal((5, 400)) * [[1], [0.4], [0.4], [0.4], [0.4]], axis=0)
    values = np.concatenate([walk, rng.standard_normal((3, 400)), -walk[:1]])
    codes = values.argsort(axis=1).argsort(axis=1) * 250 // 400
    codes[1, :7] = 255
    codes[6] = 3
    assert single_linkage(codes, 255).tolist() == [0, 0, 0, 0, 0, 5, 6, 7, 0]


@pytest.mark.parametrize("n_rows", [8, 30, 36, 40, 400])
def test_the_same_column_twice_is_a_cluster_however_few_the_rows(n_rows):
    codes = np.random.default_rng(1).permuted(np.tile(np.arange(n_rows), (3, 1)), axis=1)
    assert single_linkage(np.vstack([codes, codes[:1]]), 65535).tolist() == [0, 1, 2, 0]

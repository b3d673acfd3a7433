"""All pairs of features: the best of them against sums in floats, on every instruction set."""

import numpy as np
import pytest

from srs_ooc.evidence import pairs
from srs_ooc.evidence.conditional_tests import halves
from srs_ooc.evidence.judges import ALL, AUTO, NONE
from srs_ooc.evidence.pairs import MOST_EACH, PAIRS, Halves, most_halves, scan_nbytes
from srs_ooc.evidence.rank_tests import RankTarget
from srs_ooc.native import _native

MISSING = 255


def noise(seed, n, n_rows, n_codes=200):
    return np.random.default_rng(seed).integers(0, n_codes, (n, n_rows)).astype(np.uint8)


def target_of(n_classes, n_rows, seed=0, strata=None):
    drawn = np.random.default_rng(seed).random(n_rows)
    if n_classes == 1:
        return RankTarget.of_values(drawn, strata), drawn
    labels = np.searchsorted(np.linspace(0, 1, n_classes + 2)[2:], drawn)  # the first is large
    return RankTarget.of_classes(labels, n_classes, strata), labels


def halves_of(codes, target, rows=None, most=None):
    rows = np.arange(codes.shape[1]) if rows is None else rows
    out = Halves(target, rows, MISSING, most or 2 * len(codes))
    for some in np.array_split(np.arange(len(codes)), 4):
        out.add(np.ascontiguousarray(codes[some]), some.tolist(), other=False)
    return out


def best(of, n_threads=1):
    *_, found = of.scan(n_threads)
    return of.best(found)


def best_of(*table, n_threads=1, **how):
    return best(halves_of(*table, **how), n_threads)


def scores_of(is_high, t):
    """The score of each pair, as the module's docstring has it; float64 (n, n)."""
    signs = 2.0 * is_high - 1
    centred = signs - signs.mean(axis=1, keepdims=True)
    spread = np.sqrt(1 - signs.mean(axis=1) ** 2)
    out = np.zeros((len(signs), len(signs)))
    scale = np.outer(spread, spread) * np.sqrt((t**2).sum())
    np.divide(np.abs((centred * t) @ centred.T), scale, out=out, where=scale > 0)
    return np.tril(out, -1)


def best_scores(of_all):
    """The scores of the pairs that are to be proposed, best first: few of one feature."""
    order = np.argsort(-of_all, axis=None)
    counts, found = np.zeros(len(of_all), int), []
    for left, right in zip(*np.unravel_index(order[:1024], of_all.shape), strict=True):
        if max(counts[left], counts[right]) < MOST_EACH and len(found) < PAIRS:
            counts[[left, right]] += 1
            found.append(of_all[left, right])
    return np.array(found)


@pytest.mark.parametrize("n_rows", [60, 64, 515])
@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_the_best_pairs_are_those_of_all(n_classes, n_rows):
    codes = noise(n_classes, 150, n_rows, 6)
    codes[noise(1, 150, n_rows) < 20] = MISSING
    codes[7] = 3  # constant
    target, given = target_of(n_classes, n_rows)
    found, scores = best_of(codes, target)
    filled = codes.copy()
    for column in filled:  # a missing value counts as the middle one
        known = np.sort(column[column != MISSING])
        column[column == MISSING] = known[len(known) // 2]
    if n_classes == 1:
        quarters = np.argsort(np.argsort(given)) * 4 // n_rows
        if n_rows % 4:  # which quarter a row at its end is of
            levels = target.targets[np.argsort(target.rows)]
            counts = np.bincount(levels)
            quarters = ((2 * np.cumsum(counts) - counts) * 2 // n_rows)[levels]
        masks = [quarters >= 2, (quarters == 0) | (quarters == 3)]
    else:
        masks = [given == c for c in range(n_classes)][n_classes == 2 :]
    of_all = np.max([scores_of(halves(filled, MISSING), m - m.mean()) for m in masks], axis=0)
    assert of_all[found[:, 0], found[:, 1]] == pytest.approx(scores, rel=1e-12)
    np.testing.assert_allclose(scores, best_scores(of_all), rtol=1e-12)
    assert (found[:, 0] > found[:, 1]).all()


@pytest.mark.parametrize("n_classes", [1, 2, 5])
def test_pairs_are_the_same_whatever_looks_at_them(n_classes, monkeypatch):
    """To the bit: on every instruction set, by any threads, in pieces of any size."""
    target, _ = target_of(n_classes, 2100)
    of = halves_of(noise(5, 200, 2100, 4), target)
    expected = best(of)
    assert len(expected[0]) == PAIRS
    monkeypatch.setattr(pairs, "_AT_ONCE", 1)
    for n_threads in (1, 2, 7):
        for mine, theirs in zip(best(of, n_threads), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    found = []
    for isa in _native.isas():
        scores, places = np.zeros(50), np.full((50, 2), -1, np.int32)
        how = (of.bounds, of.coefficients, 0, 4, scores, places, 2, isa)
        _native.scan_pairs(of._tiles[:4], 200, *how)
        found.append((scores, places))
    for scores, places in found[1:]:
        np.testing.assert_array_equal(scores, found[0][0])
        np.testing.assert_array_equal(places, found[0][1])


def test_strata_are_no_part_of_what_a_pair_shows():
    """Two features whose product goes with the stratum, which goes with the target."""
    rng = np.random.default_rng(3)
    strata = np.repeat([0, 1], 400)
    labels = (rng.random(800) < 0.2 + 0.6 * strata).astype(int)
    codes = noise(4, 100, 800)
    codes[1] = np.where((codes[0] > 99) ^ (strata == 1) ^ (rng.random(800) < 0.1), 200, 0)
    found, scores = best_of(codes, RankTarget.of_classes(labels, 2))
    assert (found[0].tolist(), scores[0] > 10) == ([1, 0], True)
    found, scores = best_of(codes, RankTarget.of_classes(labels, 2, strata))
    assert scores[0] < 5
    many = RankTarget.of_classes(labels, 2, np.repeat(np.arange(80), 10))
    assert best_of(codes, many)[1][0] > 10  # of more strata than are looked at within


def test_pairs_come_before_features_that_are_strong_alone():
    rng = np.random.default_rng(0)
    codes = noise(1, 600, 1000)
    is_high = codes > 99
    sums = (is_high[:20] * 2.0 - 1).sum(axis=0)  # twenty that are strong alone
    for pair in range(5):
        sums += 3 * (is_high[100 + 2 * pair] ^ is_high[101 + 2 * pair])
    labels = (sums + rng.normal(size=1000) > np.median(sums)).astype(int)
    found, _ = best_of(codes, RankTarget.of_classes(labels, 2))
    expected = [[101 + 2 * pair, 100 + 2 * pair] for pair in range(5)]
    assert sorted(found[:5].tolist()) == expected


def test_a_feature_has_few_of_the_places():
    codes = noise(2, 300, 400)
    labels = ((codes[0] > 99) ^ (codes[1] > 99)).astype(int)
    codes[200:] = codes[1]  # copies of one of the two
    found, _ = best_of(codes, RankTarget.of_classes(labels, 2))
    assert np.bincount(found.ravel()).max() <= MOST_EACH
    assert len(found) == PAIRS


def test_dosages_are_looked_at_by_both_cuts():
    rng = np.random.default_rng(0)
    codes = rng.choice(3, (400, 600), p=[0.5, 0.35, 0.15]).astype(np.uint8)
    codes[1, :30] = MISSING
    codes[-1] = noise(0, 1, 600)  # no dosage
    labels = ((codes[3] == 2) ^ (codes[5] == 2) ^ (rng.random(600) < 0.1)).astype(int)
    target = RankTarget.of_classes(labels, 2)
    of = halves_of(codes, target)
    are_three = of.three_levels(codes)
    assert are_three.tolist() == [True] * 399 + [False]
    before = best(of)[1][0]
    of.add(np.ascontiguousarray(codes[:-1]), range(399), other=True)
    found, scores = best(of)
    assert (found[0].tolist(), scores[0] > 10) == ([5, 3], True)
    assert scores[0] > 2 * before
    assert (found[:, 0] > found[:, 1]).all()  # no feature with itself, and each pair once
    assert len(np.unique(found, axis=0)) == len(found) == PAIRS


@pytest.mark.parametrize(
    ("labels", "codes"),
    [
        (np.zeros(20, int), noise(0, 30, 20)),  # one class
        (np.arange(20) % 2, np.zeros((30, 20), np.uint8)),  # constant
        (np.arange(20) % 2, np.full((30, 20), MISSING, np.uint8)),
        (np.arange(20) % 2, noise(0, 1, 20)),  # no pair
        (np.arange(20) % 2, noise(0, 0, 20)),
    ],
)
def test_where_there_is_nothing_to_tell_apart_there_are_no_pairs(labels, codes):
    found, scores = best_of(codes, RankTarget.of_classes(labels, 2), most=30, n_threads=2)
    assert (found.shape, len(scores)) == ((0, 2), 0)


def test_some_rows_are_looked_at():
    codes, rows = noise(1, 90, 500), np.arange(1, 500, 5)
    labels = np.arange(500) % 7 % 2
    some = np.ascontiguousarray(codes[:, rows])
    target = RankTarget.of_classes(labels[rows], 2)
    for mine, theirs in zip(best_of(codes, target, rows), best_of(some, target), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_codes_of_two_bytes_part_rows_as_those_of_one():
    codes, target = noise(1, 90, 500), target_of(2, 500)[0]
    wide = Halves(target, np.arange(500), 65535, 90)
    wide.add(codes.astype(np.uint16) * 256, range(90), other=False)
    for mine, theirs in zip(best(wide), best_of(codes, target), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_scan_that_is_stopped_is_gone_on_with(monkeypatch):
    of, lefts = halves_of(noise(1, 500, 50), target_of(2, 50)[0]), []
    expected = best(of)
    monkeypatch.setattr(pairs, "_AT_ONCE", 1)
    found = None
    while found is None or found.left:  # a session for each piece
        pieces = of.scan(1, found)
        next(pieces)
        found = next(pieces)
        lefts.append((found.left, found.n_tiles))
    assert lefts == [(left, 8) for left in range(7, -1, -1)]
    for mine, theirs in zip(of.best(found), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_how_many_halves_are_looked_at():
    assert most_halves(AUTO, 1000, 20_000, 2) == 40_000  # of dosages those at both cuts
    assert 50_000 < most_halves(AUTO, 1000, 50_000, 2) < 100_000
    assert most_halves(AUTO, 1000, 10**6, 2) == 0
    assert most_halves(AUTO, 10**6, 50_000, 2) == 0  # too large to read once more
    assert most_halves(AUTO, 9, 50_000, 4) == most_halves(AUTO, 9, 50_000, 1) > 0
    assert most_halves(AUTO, 9, 50_000, 20) == 0
    assert most_halves(ALL, 10**6, 10**6, 2) == 10**6
    assert most_halves(ALL, 1000, 20_000, 2) == 40_000
    assert most_halves(NONE, 1000, 100, 2) == 0
    assert scan_nbytes(AUTO, 1000, 1000, 10**6, 2, has_strata=False) == 0
    assert scan_nbytes(ALL, 1000, 1000, 10**6, 2, has_strata=False) < 250 * 10**6
    whole = scan_nbytes(AUTO, 1000, 1000, 50_000, 2, has_strata=False)
    assert scan_nbytes(AUTO, 500, 1000, 50_000, 2, has_strata=False) < whole < 20 * 10**6

"""Thresholds uniform between values: as likely as gaps are wide, and as scikit-learn's."""

import numpy as np
import pytest
from forest_reference import decode_tree
from problems import block_of

from srs_ooc.base.seeds import key_of
from srs_ooc.trees.kernel import grow_tree, instruction_sets
from srs_ooc.trees.response import IMPORTANCE_BITS, Response, TrainingRows, TreeLimits
from srs_ooc.trees.saved import How

UNIT = float(1 << IMPORTANCE_BITS)


def root_split(block, rows, key, isa=""):
    features = np.arange(1, dtype=np.uint32)
    grown = grow_tree(block, features, rows, key, TreeLimits(1, 1), isa, record=True)
    return decode_tree(grown.record)


def roots(codes, values, n_trees=2000, *, tiled=True):
    rows = TrainingRows.of(Response.classes(np.arange(len(codes)) % 2, 2), "gini")
    block = block_of(codes[None], tiled=tiled, values=values[None])
    return [root_split(block, rows, key_of(3, t)) for t in range(n_trees)]


@pytest.mark.parametrize("n_rows", [5, 600])
def test_a_cut_is_as_likely_as_its_gap_is_wide(n_rows):
    """Gaps of 1, 8 and 1 between four values; 600 rows of plain columns take another path."""
    codes = (np.arange(n_rows) % 4).astype(np.uint8)
    values = np.array([-3.0, -2.0, 6.0, 7.0])
    for tiled in (True, False):
        cuts = np.array([split.code for split in roots(codes, values, tiled=tiled)])
        shares = np.bincount(cuts, minlength=3) / len(cuts)
        np.testing.assert_allclose(shares, [0.1, 0.8, 0.1], atol=4 * np.sqrt(0.16 / 2000))


def test_missing_values_stand_alone_as_often_as_in_rank_space():
    """Four codes and missing values: alone at one of four places, else by the width of gaps."""
    codes = np.array([0, 1, 2, 3, 255] * 4, dtype=np.uint8)
    splits = roots(codes, np.array([-3.0, -2.0, 6.0, 7.0]))
    places = []
    for split in splits:
        below = split.how == How.MISSING_LEFT
        assert below or split.how == How.MISSING_RIGHT
        code = split.code - 1 if below else split.code
        places.append(3 if code in (-1, 65_534) else code)
    shares = np.bincount(places, minlength=4) / len(places)
    np.testing.assert_allclose(shares, [0.075, 0.6, 0.075, 0.25], atol=0.045)
    assert 0.4 < np.mean([split.how == How.MISSING_LEFT for split in splits]) < 0.6


def test_categories_keep_their_rule():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 9, (70, 60)).astype(np.uint8)
    rows = TrainingRows.of(Response.classes(rng.integers(0, 2, 60), 2), "gini")
    features, flags = np.arange(70, dtype=np.uint32), np.ones(70, dtype=bool)
    values = rng.exponential(size=(70, 9)).cumsum(axis=1)
    plain, by_value = (
        grow_tree(block, features, rows, 5, TreeLimits(70), record=True, categorical=flags)
        for block in (block_of(codes, tiled=True), block_of(codes, tiled=True, values=values))
    )
    assert plain.record == by_value.record


def test_equally_spaced_values_agree_with_ranks_in_law():
    """Mean importances of 300 trees, drawn by value and by code."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 30, (12, 200)).astype(np.uint8)
    labels = (codes[0] > 20).astype(int) ^ (rng.random(200) < 0.1)
    rows = TrainingRows.of(Response.classes(labels, 2), "gini")
    features = np.arange(12, dtype=np.uint32)
    even = np.tile(np.arange(30, dtype=np.float32) * 3 - 7, (12, 1))
    means = []
    for number, values in enumerate((None, even)):
        block = block_of(codes, tiled=True, values=values)
        trees = [
            grow_tree(block, features, rows, key_of(number, t), TreeLimits(12)) for t in range(300)
        ]
        means.append(np.mean([tree.importance for tree in trees], axis=0) / UNIT)
    np.testing.assert_allclose(*means, atol=0.01)


@pytest.mark.slow
def test_statistics_agree_with_scikit_learn_on_skewed_values():
    """Importances of 400 trees where ranks and values differ much, and are far from each other."""
    tree = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(2)
    values = np.exp(4 * rng.standard_normal((8, 200))).astype(np.float32)
    labels = ((values[0] > 1) ^ (rng.random(200) < 0.1)).astype(int)
    order = np.sort(values, axis=1)
    codes = np.stack([np.searchsorted(s, v) for s, v in zip(order, values, strict=True)])
    block = block_of(codes.astype(np.uint8), tiled=True, values=order)
    by_rank = block_of(codes.astype(np.uint8), tiled=True)
    rows = TrainingRows.of(Response.classes(labels, 2), "gini")
    features = np.arange(8, dtype=np.uint32)
    ours, ranks, theirs = np.zeros(8), np.zeros(8), np.zeros(8)
    for t in range(400):
        ours += grow_tree(block, features, rows, key_of(t), TreeLimits(1)).importance / UNIT
        ranks += grow_tree(by_rank, features, rows, key_of(t), TreeLimits(1)).importance / UNIT
        peer = tree.ExtraTreeClassifier(max_features=1, random_state=t).fit(values.T, labels)
        theirs += peer.tree_.compute_feature_importances(normalize=False)
    np.testing.assert_allclose(ours / 400, theirs / 400, atol=0.012)
    assert np.abs(ranks / 400 - theirs / 400).max() > 0.03


def test_values_of_every_column_are_needed():
    codes = np.zeros((3, 10), dtype=np.uint8)
    rows = TrainingRows.of(Response.classes(np.arange(10) % 2, 2), "gini")
    block = block_of(codes, tiled=True, values=np.zeros((3, 4)))
    block.values = block.values[:3]
    for isa in instruction_sets():
        with pytest.raises(ValueError, match="values of the codes"):
            grow_tree(block, np.arange(3, dtype=np.uint32), rows, 1, TreeLimits(3), isa)

"""Forests grown in one call: their Python twin, their parts, and scikit-learn's forests."""

import numpy as np
import pytest
import tree_reference as reference
from problems import block_of
from scipy.stats import spearmanr

from srs_ooc.trees.kernel import grow_tree, instruction_sets
from srs_ooc.trees.response import IMPORTANCE_BITS, Response, TrainingRows, TreeLimits

ALL = np.iinfo(np.int64).max


def problem(n_rows=60, n_columns=70, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n_columns, n_rows))
    target = 2 * values[3] + values[7] * values[11] + 0.5 * rng.standard_normal(n_rows)
    codes = values.argsort(axis=1).argsort(axis=1).astype(np.uint8)
    return values, codes, target


@pytest.mark.slow
@pytest.mark.parametrize("isa", instruction_sets())
@pytest.mark.parametrize(
    ("splitter", "bootstrap", "k", "tiled", "weighted"),
    [
        ("best", True, ALL, True, False),
        ("best", True, 8, False, False),
        ("random", False, 8, True, False),
        ("best", True, 8, False, True),
    ],
)
def test_the_native_forest_equals_its_twin(isa, splitter, bootstrap, k, tiled, weighted):
    _, codes, target = problem(40)
    weights = np.arange(1.0, 41) if weighted else None
    rows = TrainingRows.of(Response.targets(target, weights), "variance")
    limits = TreeLimits(k, impurity="variance", splitter=splitter)
    features = np.arange(100, 100 + len(codes), dtype=np.uint32)
    expected = reference.grow_forest(
        codes, rows, features, 5, limits, trees=range(3), bootstrap=bootstrap
    )
    block = block_of(codes, tiled=tiled)
    parts = [
        grow_tree(block, features, rows, 5, limits, isa, trees=trees, bootstrap=bootstrap)
        for trees in (range(1), range(1, 3))
    ]
    np.testing.assert_array_equal(sum(part.importance for part in parts), expected)


@pytest.mark.few(1)
@pytest.mark.parametrize(("splitter", "k"), [("best", 8), ("best", ALL), ("random", 8)])
def test_importances_agree_with_scikit_learns_forests(splitter, k):
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

    values, codes, target = problem(120, 20)
    target = 0.8 ** np.arange(20) @ values + 0.1 * target  # each column matters less than the last
    rows = TrainingRows.of(Response.targets(target), "variance")
    limits = TreeLimits(k, impurity="variance", splitter=splitter)
    n_trees, bootstrap = 400, splitter == "best"
    features = np.arange(20, dtype=np.uint32)
    block = block_of(codes, tiled=True)
    grown = grow_tree(block, features, rows, 1, limits, trees=range(n_trees), bootstrap=bootstrap)
    ours = np.ldexp(grown.importance / n_trees, -IMPORTANCE_BITS)
    kind = RandomForestRegressor if splitter == "best" else ExtraTreesRegressor
    peer = kind(200, max_features=min(k, 20), random_state=0).fit(values.T, target / target.std())
    theirs = np.mean(
        [tree.tree_.compute_feature_importances(normalize=False) for tree in peer.estimators_], 0
    )
    assert spearmanr(ours, theirs).statistic > 0.9
    # In units of the target's variance, as GENIE3's: the same numbers, but for chance.
    np.testing.assert_allclose(ours, theirs, atol=0.04)


def test_trees_of_a_sample_count_by_what_they_decrease_of_all_rows():
    _, codes, target = problem()
    rows = TrainingRows.of(Response.targets(target), "variance")
    limits = TreeLimits(ALL, impurity="variance", splitter="best")
    features = np.arange(len(codes), dtype=np.uint32)
    grown = grow_tree(
        block_of(codes, tiled=True), features, rows, 2, limits, trees=range(1), bootstrap=True
    )
    sample = rows.resampled(2)  # a tree grown whole explains all of its sample's variance
    expected = sample.root_scale / rows.root_scale
    assert np.ldexp(grown.importance.sum(), -IMPORTANCE_BITS) == pytest.approx(expected, rel=1e-6)


@pytest.mark.few(4)
@pytest.mark.parametrize("isa", instruction_sets())
@pytest.mark.parametrize("splitter", ["best", "random"])
@pytest.mark.parametrize("n_rows", [2, 31, 33, 65, 129, 257, 400])
def test_nodes_equal_the_twin_whatever_registers_and_tables_hold_their_rows(isa, splitter, n_rows):
    rng = np.random.default_rng(n_rows)
    codes = rng.integers(0, 254, (35, n_rows)).astype(np.uint8)
    codes[5:9] %= 3  # rows that no split parts, and splits of other columns that are the same
    codes[9:12] = codes[1]
    codes[12] = 0
    codes[13, 0] = 255
    target = rng.standard_normal(n_rows)
    target[0] = 100.0  # sums of 64 bits above its leaf, of 32 bits beside it
    rows = TrainingRows.of(Response.targets(target, np.arange(n_rows) % 3 + 1.0), "variance")
    features = np.arange(35, dtype=np.uint32)[::-1].copy()
    for k, least in ((ALL, 1), (6, 2), (33, 1)):
        limits = TreeLimits(k, 4, least, impurity="variance", splitter=splitter)
        expected = reference.grow_on(codes, rows, features, 9, limits).importance
        for tiled in (False, True):
            block = block_of(codes, tiled=tiled)
            grown = grow_tree(block, features, rows, 9, limits, isa, trees=range(1))
            np.testing.assert_array_equal(grown.importance, expected)


@pytest.mark.slow
@pytest.mark.parametrize("isa", instruction_sets())
@pytest.mark.parametrize("weight", [None, 1.0, 1000.0])  # with the last one sums are above a cell's
def test_nodes_of_many_rows_equal_the_twin_however_rows_are_counted_by_code(isa, weight):
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 254, (70, 300)).astype(np.uint8)
    codes[3:6] %= 2
    codes[6:8] = codes[0]
    codes[8] = 7
    weights = None if weight is None else weight * (np.arange(300) % 4 + 1.0)
    rows = TrainingRows.of(Response.targets(rng.standard_normal(300), weights), "variance")
    features = np.arange(70, dtype=np.uint32)
    for k, least in ((ALL, 1), (30, 1), (30, 20)):
        limits = TreeLimits(k, 2, least, impurity="variance", splitter="best")
        expected = reference.grow_on(codes, rows, features, 9, limits).importance
        for tiled in (False, True):
            block = block_of(codes, tiled=tiled)
            grown = grow_tree(block, features, rows, 9, limits, isa, trees=range(1))
            np.testing.assert_array_equal(grown.importance, expected)

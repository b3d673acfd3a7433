"""The native kernel equals its Python reference exactly, and means what it says."""

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from problems import block_of
from tree_reference import grow_tree as reference_tree

from srs_ooc.base.seeds import key_of
from srs_ooc.trees.kernel import grow_tree, instruction_sets
from srs_ooc.trees.response import (
    IMPORTANCE_BITS,
    Response,
    TrainingRows,
    TreeLimits,
    log2_table,
    xlogx_table,
)

UNIT = float(1 << IMPORTANCE_BITS)


@st.composite
def problems(draw):
    n = draw(st.integers(2, 90))
    q = draw(st.integers(1, 150))
    n_classes = draw(st.integers(2, 7))
    dtype = draw(st.sampled_from([np.uint8, np.uint16]))
    n_codes = draw(st.sampled_from([1, 2, 3, 20, 255] + ([60_000] if dtype == np.uint16 else [])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = rng.integers(0, n_codes, (q, n)).astype(dtype)
    labels = rng.integers(0, n_classes, n)
    if draw(st.booleans()):
        codes[rng.integers(q)] = labels  # a column that decides
    features = rng.choice(10**8, q, replace=False).astype(np.uint32)
    limits = TreeLimits(
        max_features=draw(st.integers(1, q + 1)),
        max_depth=draw(st.sampled_from([None, 1, 3])),
        min_samples_leaf=draw(st.integers(1, 4)),
        impurity=draw(st.sampled_from(["gini", "entropy"])),
    )
    return codes, labels, n_classes, features, limits, draw(st.integers(0, 2**64 - 1))


def native_tree(
    codes, labels, n_classes, features, key, limits, *, tiled=True, isa="", record=False
):
    rows = TrainingRows.of(Response.classes(labels, n_classes), limits.impurity)
    block = block_of(codes, tiled=tiled)
    return grow_tree(block, features, rows, key, limits, isa, record=record)


def assert_same(a, b):
    np.testing.assert_array_equal(a.importance, b.importance)
    assert (a.n_nodes, a.n_leaves, a.depth) == (b.n_nodes, b.n_leaves, b.depth)


@examples(60)
@given(problems())
def test_native_equals_reference_on_every_instruction_set_and_layout(problem):
    codes, labels, n_classes, features, limits, key = problem
    table = xlogx_table(len(labels))
    expected = reference_tree(codes, labels, n_classes, features, key, limits, table)
    for isa in instruction_sets():
        for tiled in (True, False):
            grown = native_tree(
                codes, labels, n_classes, features, key, limits, tiled=tiled, isa=isa, record=True
            )
            assert_same(grown, expected)
            assert grown.record == expected.record


def test_a_tree_is_recorded_only_when_asked_and_growing_it_is_the_same():
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 200, (70, 300)).astype(np.uint8)
    arguments = codes, rng.integers(0, 3, 300), 3, np.arange(70, dtype=np.uint32), 5
    plain = native_tree(*arguments, TreeLimits(70))
    recorded = native_tree(*arguments, TreeLimits(70), record=True)
    assert plain.record is None
    assert len(recorded.record) > 2 * recorded.n_nodes
    assert_same(plain, recorded)


@pytest.mark.parametrize(
    ("limits", "most"),
    [
        (TreeLimits(1), 100),
        (TreeLimits(1, min_samples_leaf=7), 14),
        (TreeLimits(1, max_depth=3), 8),
        (TreeLimits(1, max_depth=60), 100),
        (TreeLimits(1, min_samples_leaf=300), 1),
    ],
)
def test_the_most_leaves_a_tree_can_have(limits, most):
    """What the memory of a record is taken from: noise, split as far as the limits allow."""
    assert limits.most_leaves(100) == most
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 250, (40, 100)).astype(np.uint8)
    labels = rng.integers(0, 9, 100)
    grown = native_tree(codes, labels, 9, np.arange(40, dtype=np.uint32), 3, limits, record=True)
    assert grown.n_leaves <= most


@pytest.mark.parametrize("n_classes", [2, 5])
def test_instruction_sets_agree_above_the_32_bit_counts(n_classes):
    """Nodes of more than 32,768 rows take the 64-bit path; lane counters are flushed many times."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 254, (70, 40_000)).astype(np.uint8)
    labels = (codes[5] > 99) + rng.integers(0, n_classes - 1, 40_000)
    features = np.arange(70, dtype=np.uint32)
    limits = TreeLimits(70, max_depth=2)
    expected = reference_tree(codes, labels, n_classes, features, 9, limits)
    for isa in instruction_sets():
        assert_same(native_tree(codes, labels, n_classes, features, 9, limits, isa=isa), expected)


@examples(25)
@given(problems(), st.randoms(use_true_random=False))
def test_permuting_columns_permutes_importances_and_nothing_else(problem, random):
    codes, labels, n_classes, features, limits, key = problem
    order = list(range(len(features)))
    random.shuffle(order)
    plain = native_tree(codes, labels, n_classes, features, key, limits)
    moved = native_tree(codes[order], labels, n_classes, features[order], key, limits)
    np.testing.assert_array_equal(moved.importance, plain.importance[order])
    assert (moved.n_nodes, moved.depth) == (plain.n_nodes, plain.depth)


@pytest.mark.parametrize("max_features", [200, 14])
def test_on_noise_importance_does_not_depend_on_the_place_in_the_block(max_features):
    """Law 8: splits on noise fall on tenths of the block in equal shares (first-wins gave 36%)."""
    rng = np.random.default_rng(0)
    n, q, n_trees = 200, 200, 400
    ranks = np.argsort(rng.standard_normal((q, n)), axis=1).astype(np.uint8)
    labels = rng.integers(0, 2, n)
    rows = TrainingRows.of(Response.classes(labels, 2), "gini")
    block = block_of(ranks, tiled=True)
    importance = np.zeros(q)
    for t in range(n_trees):
        # Fresh feature numbers, so that only the place in the block is the same in all trees.
        features = rng.choice(10**6, q, replace=False).astype(np.uint32)
        grown = grow_tree(block, features, rows, key_of(1, t), TreeLimits(max_features))
        importance += grown.importance / UNIT
    # The labels favour some columns by luck; which tenth they lie in is luck too, once: compare
    # with the same trees on the block in reverse order, which would mirror any effect of place.
    reverse = block_of(ranks[::-1], tiled=True)
    mirrored = np.zeros(q)
    for t in range(n_trees):
        features = rng.choice(10**6, q, replace=False).astype(np.uint32)
        grown = grow_tree(reverse, features, rows, key_of(2, t), TreeLimits(max_features))
        mirrored += grown.importance[::-1] / UNIT
    tenths = importance.reshape(10, -1).sum(axis=1) / importance.sum()
    mirrored_tenths = mirrored.reshape(10, -1).sum(axis=1) / mirrored.sum()
    np.testing.assert_allclose(tenths, mirrored_tenths, atol=0.01)


def test_exact_ties_are_broken_uniformly():
    """Forty identical columns: each is chosen equally often, wherever it lies."""
    rng = np.random.default_rng(1)
    column = rng.integers(0, 2, 30).astype(np.uint8)
    codes = np.tile(column, (40, 1))
    labels = np.where(rng.random(30) < 0.8, column, 1 - column)
    features = np.arange(40, dtype=np.uint32)
    chosen = np.zeros(40)
    n_trees = 8000
    for t in range(n_trees):
        grown = native_tree(codes, labels, 2, features, key_of(5, t), TreeLimits(40, max_depth=1))
        chosen += grown.importance > 0
    assert chosen.sum() == n_trees
    expected = n_trees / 40
    chi_square = ((chosen - expected) ** 2 / expected).sum()
    assert chi_square < 39 + 5 * np.sqrt(2 * 39)


def test_splits_that_decrease_nothing_are_made_and_count_for_nothing():
    """The parity of two bits: no first split decreases anything, the second decides."""
    a = np.array([0, 0, 1, 1] * 5, dtype=np.uint8)
    b = np.array([0, 1, 0, 1] * 5, dtype=np.uint8)
    codes, labels = np.stack([a, b]), a ^ b
    firsts = np.zeros(2)
    for t in range(200):
        grown = native_tree(codes, labels, 2, np.arange(2, dtype=np.uint32), t, TreeLimits(2))
        assert grown.n_leaves == 4
        np.testing.assert_allclose(sorted(grown.importance / UNIT), [0.0, 0.5], atol=1e-9)
        firsts += grown.importance == 0
    assert 60 < firsts[0] < 140


@pytest.mark.parametrize("impurity", ["gini", "entropy"])
def test_importances_of_a_full_tree_add_up_to_the_impurity(impurity):
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 250, (30, 300)).astype(np.uint8)
    labels = rng.integers(0, 4, 300)
    features = np.arange(30, dtype=np.uint32)
    grown = native_tree(codes, labels, 4, features, 1, TreeLimits(30, impurity=impurity))
    shares = np.bincount(labels) / 300
    whole = 1 - (shares**2).sum() if impurity == "gini" else -(shares * np.log2(shares)).sum()
    assert grown.importance.sum() / UNIT == pytest.approx(whole, abs=1e-6)
    assert grown.n_nodes == 2 * grown.n_leaves - 1


@pytest.mark.slow
@pytest.mark.parametrize("max_features", [None, 7])
def test_statistics_agree_with_scikit_learn_on_the_same_codes(max_features):
    """Mean importances and node counts of 400 trees, where thresholds mean the same to both.

    scikit-learn draws thresholds uniformly between values; on codes 0 .. 1 and on dense ranks that
    is the same split distribution.
    """
    tree = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(4)
    n, q = 240, 30
    codes = np.argsort(rng.standard_normal((q, n)), axis=1).argsort(axis=1).astype(np.uint8)
    codes[20:] = codes[20:] > 120
    labels = ((codes[0] > 100) ^ (codes[25] > 0)) + (codes[3] > 150)
    k = max_features or q
    ours, theirs, our_nodes, their_nodes = np.zeros(q), np.zeros(q), [], []
    for t in range(400):
        features = np.arange(q, dtype=np.uint32)
        grown = native_tree(codes, labels, 3, features, key_of(7, t), TreeLimits(k))
        ours += grown.importance / UNIT / 400
        our_nodes.append(grown.n_nodes)
        peer = tree.ExtraTreeClassifier(max_features=k, random_state=t)
        peer.fit(codes.T.astype(np.float32), labels)
        theirs += peer.tree_.compute_feature_importances(normalize=False) / 400
        their_nodes.append(peer.tree_.node_count)
    np.testing.assert_allclose(ours, theirs, atol=0.012)
    spread = np.hypot(np.std(our_nodes), np.std(their_nodes)) / np.sqrt(400)
    assert abs(np.mean(our_nodes) - np.mean(their_nodes)) < 4 * spread


def test_the_entropy_table_is_accurate_and_fixed():
    x = np.arange(1, 70_000)
    log = log2_table(70_000)
    assert np.abs(log[1:] / 2**40 - np.log2(x)).max() < 2**-24
    table = xlogx_table(8)
    assert (table[[0, 1, 2, 4, 8]] == np.array([0, 0, 2, 8, 24]) << 32).all()
    exact = x * np.log2(x)
    np.testing.assert_allclose(xlogx_table(69_999)[1:] / 2**32, exact, rtol=1e-7, atol=1e-7)


def test_a_block_smaller_than_its_shape_is_refused():
    block = block_of(np.zeros((3, 10), dtype=np.uint8), tiled=False)
    rows = TrainingRows.of(Response.classes(np.arange(10) % 2, 2), "gini")
    with pytest.raises(ValueError, match="smaller"):
        grow_tree(block, np.arange(200, dtype=np.uint32), rows, 1, TreeLimits(1))

"""Trees against what is known: Eq. (2) by enumeration, scikit-learn, sizes at the limits."""

import itertools
from collections import Counter
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from forest_reference import map_categories
from problems import block_of, grown

from srs_ooc.base.seeds import key_of
from srs_ooc.trees.kernel import instruction_sets
from srs_ooc.trees.response import IMPORTANCE_BITS, Response, TrainingRows, TreeLimits

UNIT = float(1 << IMPORTANCE_BITS)


def entropy(labels):
    shares = np.bincount(labels) / len(labels)
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum())


def information(codes, labels, feature, given):
    """I(X; Y | B), the rows being the distribution."""
    total = 0.0
    for values in product(*(np.unique(codes[b]) for b in given)):
        here = np.ones(len(labels), dtype=bool)
        for b, value in zip(given, values, strict=True):
            here &= codes[b] == value
        if not here.any():
            continue
        parts = [labels[here & (codes[feature] == v)] for v in (0, 1)]
        conditional = sum(len(part) * entropy(part) for part in parts if len(part))
        total += (here.sum() * entropy(labels[here]) - conditional) / len(labels)
    return total


def equation_2(codes, labels, feature):
    """With the factor 1/(p - k) that the print omits (docs/research/errata.md), for q = p."""
    p = len(codes)
    others = [i for i in range(p) if i != feature]
    return sum(
        sum(information(codes, labels, feature, b) for b in combinations(others, k))
        / (comb(p, k) * (p - k))
        for k in range(p)
    )


def distribution():
    """Every cell of four binary features in proportion: two matter, one copies, one does not."""
    cells = list(product((0, 1), repeat=3))
    codes, labels = [], []
    for a, b, noise in cells:
        for y, times in ((a & b, 3), (1 - (a & b), 1)):
            codes += [(a, b, a, noise)] * times
            labels += [y] * times
    return np.array(codes, dtype=np.uint8).T.copy(), np.array(labels)


@pytest.mark.parametrize("tiled", [True, False])
def test_totally_randomized_trees_converge_to_equation_2(tiled):
    codes, labels = distribution()
    expected = [equation_2(codes, labels, feature) for feature in range(len(codes))]
    rows = TrainingRows.of(Response.classes(labels, 2), "entropy")
    block, limits = block_of(codes, tiled=tiled), TreeLimits(1, impurity="entropy")
    trees = (grown(block, rows, limits, key_of(2, t)) for t in range(6000))
    importance = [tree.importance / UNIT for tree in trees]
    spread = np.std(importance, axis=0) / np.sqrt(len(importance))
    assert (np.abs(np.mean(importance, axis=0) - expected) <= 4 * spread + 1e-7).all()
    assert expected[3] == pytest.approx(0)
    assert np.max(importance, axis=0)[3] == 0  # irrelevant: exactly nothing, in every tree


@pytest.mark.parametrize("splitter", ["random", "best"])
def test_regression_agrees_with_scikit_learn(splitter):
    """Mean importances, as shares of the variance, and node counts, on dense ranks and bits."""
    tree = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(4)
    n, q, n_trees = 200, 20, 200 if splitter == "random" else 12
    codes = np.argsort(rng.standard_normal((q, n)), axis=1).argsort(axis=1).astype(np.uint8)
    codes[15:] = codes[15:] > 100
    target = codes[0] / 50 + 2.0 * codes[16] + 0.5 * rng.standard_normal(n)
    rows = TrainingRows.of(Response.targets(target), "variance")
    block = block_of(codes, tiled=True)
    limits = TreeLimits(q, impurity="variance", splitter=splitter, min_samples_leaf=3)
    ours, theirs, nodes = np.zeros(q), np.zeros(q), np.zeros((2, n_trees))
    for t in range(n_trees):
        found = grown(block, rows, limits, key_of(7, t))
        ours += found.importance / UNIT / n_trees
        kind = tree.ExtraTreeRegressor if splitter == "random" else tree.DecisionTreeRegressor
        peer = kind(max_features=None, random_state=t, min_samples_leaf=3)
        peer.fit(codes.T.astype(np.float32), target)
        share = peer.tree_.compute_feature_importances(normalize=False) / target.var()
        theirs += share / n_trees
        nodes[:, t] = found.n_nodes, peer.tree_.node_count
    np.testing.assert_allclose(ours, theirs, atol=0.02)
    assert nodes[0].mean() == pytest.approx(nodes[1].mean(), rel=0.02)


def test_best_splits_agree_with_scikit_learn_at_the_root():
    tree = pytest.importorskip("sklearn.tree")
    rng = np.random.default_rng(5)
    for n_classes in (2, 5):
        codes = rng.integers(0, 250, (70, 400)).astype(np.uint8)
        labels = (codes[3] // 60 + rng.integers(0, 2, 400)) % n_classes
        limits = TreeLimits(70, max_depth=1, splitter="best")
        found = grown(codes, Response.classes(labels, n_classes), limits)
        peer = tree.DecisionTreeClassifier(max_depth=1).fit(codes.T.astype(np.float32), labels)
        expected = peer.tree_.compute_feature_importances(normalize=False)
        np.testing.assert_allclose(found.importance / UNIT, expected, atol=1e-9)


@pytest.mark.parametrize("impurity", ["gini", "variance"])
def test_weights_are_repetitions(impurity):
    """A tree on weighted rows is the tree on rows repeated, up to the rounding of targets."""
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 200, (40, 80)).astype(np.uint8)
    times = rng.integers(1, 5, 80)
    target = rng.integers(0, 3, 80)
    many = np.repeat(np.arange(80), times)
    if impurity == "gini":
        weighted = Response.classes(target, 3, times.astype(float))
        repeated = Response.classes(target[many], 3)
    else:
        weighted = Response.targets(target.astype(float), times.astype(float))
        repeated = Response.targets(target[many].astype(float))
    limits = TreeLimits(40, impurity=impurity)
    both = (codes, weighted), (np.ascontiguousarray(codes[:, many]), repeated)
    trees = [grown(*one, limits, 3) for one in both]
    np.testing.assert_allclose(trees[0].importance, trees[1].importance, atol=2**10)
    assert trees[0].n_nodes == trees[1].n_nodes


def test_importances_of_a_full_regression_tree_add_up_to_one():
    rng = np.random.default_rng(2)
    codes = np.argsort(rng.standard_normal((30, 150)), axis=1).argsort(axis=1).astype(np.uint8)
    rows = TrainingRows.of(Response.targets(rng.standard_normal(150) + 1e6), "variance")
    for splitter in ("random", "best"):
        found = grown(codes, rows, TreeLimits(30, impurity="variance", splitter=splitter))
        assert found.importance.sum() / UNIT == pytest.approx(1, abs=1e-7)


def test_splits_below_the_least_importance_are_not_made():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 200, (20, 300)).astype(np.uint8)
    response = Response.classes((codes[0] > 100) ^ (rng.random(300) < 0.2), 2)
    least = int(0.01 * UNIT)
    found = grown(codes, response, TreeLimits(20, min_decrease=least))
    assert 1 < found.n_leaves < 20
    assert found.importance[found.importance > 0].min() >= least


@pytest.mark.few(1)
@pytest.mark.parametrize("impurity", ["gini", "variance"])
def test_sizes_at_the_limits_grow_alike_on_every_instruction_set(impurity):
    """uint16 above 65,536 rows, q = 1; a million rows; q far above n."""
    rng = np.random.default_rng(8)
    cases = [(70_000, 1, np.uint16), (1_000_000, 2, np.uint8), (12, 5000, np.uint8)]
    for n, q, dtype in cases:
        codes = rng.integers(0, np.iinfo(dtype).max, (q, n)).astype(dtype)
        target = codes[0] > np.iinfo(dtype).max // 2
        noisy = target ^ (rng.random(n) < 0.1)
        response = Response.classes(noisy.astype(int), 2)
        if impurity == "variance":
            response = Response.targets(noisy + 0.1 * rng.random(n))
        block, limits = block_of(codes, tiled=True), TreeLimits(q, max_depth=3, impurity=impurity)
        first, *others = (grown(block, response, limits, isa=isa) for isa in instruction_sets())
        for other in others:
            np.testing.assert_array_equal(other.importance, first.importance)
        assert first.importance[0] > 0 or q > n


# Missing values and categories draw no importance by themselves, and are found if they matter.

MISSING = 255


def mean_importance(codes, response, limits, n_trees, *, categorical=None, seed=0):
    rows, block = TrainingRows.of(response, limits.impurity), block_of(codes, tiled=True)
    trees = (grown(block, rows, limits, key_of(seed, t), categorical=categorical)
             for t in range(n_trees))  # fmt: skip
    total = sum(tree.importance for tree in trees)
    return total / n_trees / (1 << IMPORTANCE_BITS)


def responses(rng, n):
    return Response.classes(rng.integers(0, 2, n), 2), Response.targets(rng.standard_normal(n))


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("k", [1, 20])
def test_a_feature_missing_at_random_is_worth_no_more_than_a_complete_one(kind, k):
    """Half of 40 irrelevant features are missing in a third of the rows; means over 60 tables."""
    shares = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        codes = rng.permuted(np.tile(np.arange(120), (40, 1)), axis=1).astype(np.uint8)
        codes[:20][rng.random((20, 120)) < 1 / 3] = MISSING
        response = responses(rng, 120)[kind]
        limits = TreeLimits(k, impurity="variance" if kind else "gini")
        importance = mean_importance(codes, response, limits, 15, seed=seed)
        shares.append(importance[:20].sum() / importance.sum())
    spread = np.std(shares) / np.sqrt(len(shares))
    assert np.mean(shares) < 0.5 + 4 * spread


@pytest.mark.parametrize("splitter", ["random", "best"])
@pytest.mark.parametrize("kind", [0, 1])
def test_a_feature_whose_missingness_carries_the_signal_is_found(kind, splitter):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 200, (30, 200)).astype(np.uint8)
    signal = rng.random(200) < 0.3
    codes[7, signal] = MISSING
    response = (Response.classes(signal.astype(int), 2), Response.targets(signal * 1.0))[kind]
    limits = TreeLimits(30, impurity="variance" if kind else "gini", splitter=splitter)
    importance = mean_importance(codes, response, limits, 20)
    assert importance[7] > 0.9 * importance.sum()
    assert importance.argmax() == 7


def test_every_place_of_a_threshold_is_equally_likely_with_missing_values():
    """Codes 0 .. 3 and missing ones: four cuts below a coin's order, one of them missing alone."""
    codes = np.repeat([0, 1, 2, 3, MISSING], 4).astype(np.uint8)[None]
    response = Response.classes(np.arange(20) % 2, 2)
    rows, block = TrainingRows.of(response, "gini"), block_of(codes, tiled=False)
    trees = (grown(block, rows, TreeLimits(1, 1), key_of(9, t), record=True) for t in range(4000))
    grouped = Counter(tree.record for tree in trees)
    assert len(grouped) == 8  # four cuts with missing values above, four below
    assert min(grouped.values()) > 400


@pytest.mark.few(1)
@pytest.mark.parametrize("missing", [255, 65_535])
@pytest.mark.parametrize("codes", [[0, 1, 2], [0, 1, 2, 3, None], [7, 8, 9, 10, 11]])
def test_every_binary_partition_of_few_categories_occurs(codes, missing):
    """And those of equal size about equally often, so that names do not matter."""
    codes = np.array([missing if code is None else code for code in codes])
    rng, counts, n_keys = np.random.default_rng(0), Counter(), 20_000
    for hash_, draw in zip(rng.integers(0, 2**32, n_keys), rng.random(n_keys), strict=True):
        seen = map_categories(codes, int(hash_), missing)
        threshold = seen.min() + int(draw * (seen.max() - seen.min()))
        left = tuple(np.flatnonzero(seen <= threshold))
        right = tuple(np.flatnonzero(seen > threshold))
        counts[min(left, right, key=lambda part: (len(part), part))] += 1
    n = len(codes)
    for size in range(1, n // 2 + 1):
        sides = [
            side for side in itertools.combinations(range(n), size)
            if 2 * size < n or 0 in side
        ]  # fmt: skip
        found = np.array([counts[side] for side in sides])
        assert (np.abs(found / found.mean() - 1) < 0.15).all(), (size, found)


def test_the_bijection_of_categories_is_one():
    for missing in (255, 65_535):
        for hash_ in (0, 1, 0xDEADBEEF):
            seen = map_categories(np.arange(missing + 1), hash_, missing)
            assert len(np.unique(seen)) == missing + 1


def test_renaming_categories_does_not_change_importances():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 6, (12, 300)).astype(np.uint8)
    labels = np.isin(codes[0], [0, 3, 5]) ^ (rng.random(300) < 0.1)
    response = Response.classes(labels, 2)
    renamed = codes.copy()
    renamed[0] = np.array([200, 17, 3, 90, 91, 254])[codes[0]]
    flags = np.ones(12, dtype=bool)
    limits = TreeLimits(4)
    plain = mean_importance(codes, response, limits, 400, categorical=flags)
    other = mean_importance(renamed, response, limits, 400, categorical=flags, seed=1)
    assert plain[0] > 4 * plain[1:].max()
    np.testing.assert_allclose(plain, other, atol=0.02)

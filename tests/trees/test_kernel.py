"""The native kernel equals its Python reference exactly, and means what it says."""

import numpy as np
import pytest
import tree_reference as reference
from examples import examples, given, st
from forest_reference import Split, decode_tree
from forest_reference import add_shares as reference_shares
from problems import block_of, grown, tree_problems
from scipy.stats import spearmanr
from tree_reference import grow_on
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
from srs_ooc.trees.saved import How, add_shares, decode_trees

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


def native_tree(codes, labels, n_classes, features, key, limits, **how):
    response = Response.classes(labels, n_classes)
    return grown(codes, response, limits, key, features=features, **how)


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
            how = {"tiled": tiled, "isa": isa, "record": True}
            found = native_tree(codes, labels, n_classes, features, key, limits, **how)
            assert_same(found, expected)
            assert found.record == expected.record


def test_a_tree_is_recorded_only_when_asked_and_growing_it_is_the_same():
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 200, (70, 300)).astype(np.uint8)
    arguments = codes, Response.classes(rng.integers(0, 3, 300), 3), TreeLimits(70), 5
    plain, recorded = grown(*arguments), grown(*arguments, record=True)
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
    response = Response.classes(rng.integers(0, 9, 100), 9)
    assert grown(codes, response, limits, 3, record=True).n_leaves <= most


def agree_on_every_instruction_set(codes, labels, n_classes):
    features, limits = np.arange(len(codes), dtype=np.uint32), TreeLimits(len(codes), max_depth=2)
    expected = reference_tree(codes, labels, n_classes, features, 9, limits)
    for isa in instruction_sets():
        assert_same(native_tree(codes, labels, n_classes, features, 9, limits, isa=isa), expected)


@pytest.mark.parametrize("n_classes", [2, 5])
def test_instruction_sets_agree_above_the_32_bit_counts(n_classes):
    """Nodes of more than 32,768 rows take the 64-bit path; lane counters are flushed many times."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 254, (70, 40_000)).astype(np.uint8)
    labels = (codes[5] > 99) + rng.integers(0, n_classes - 1, 40_000)
    agree_on_every_instruction_set(codes, labels, n_classes)


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "n_columns"), [(270, 16_000), (2100, 2100)])
def test_blocks_that_no_cache_holds_are_the_same(n_rows, n_columns):
    """Lines are asked for ahead, of the next tile or of the next rows; the last ones have none."""
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 254, (n_columns, n_rows)).astype(np.uint8)
    agree_on_every_instruction_set(codes, (codes[5] > 99) ^ (rng.random(n_rows) < 0.2), 2)


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
    tenths = []
    # The labels favour some columns by luck; which tenth they lie in is luck too, once: compare
    # with the same trees on the block in reverse order, which would mirror any effect of place.
    for turn in (1, -1):
        block, importance = block_of(ranks[::turn], tiled=True), np.zeros(q)
        for t in range(n_trees):
            # Fresh feature numbers, so that only the place in the block is the same in all trees.
            features = rng.choice(10**6, q, replace=False).astype(np.uint32)
            key, limits = key_of(1 if turn == 1 else 2, t), TreeLimits(max_features)
            importance += grow_tree(block, features, rows, key, limits).importance[::turn] / UNIT
        tenths.append(importance.reshape(10, -1).sum(axis=1) / importance.sum())
    np.testing.assert_allclose(*tenths, atol=0.01)


def test_exact_ties_are_broken_uniformly():
    """Forty identical columns: each is chosen equally often, wherever it lies."""
    rng = np.random.default_rng(1)
    column = rng.integers(0, 2, 30).astype(np.uint8)
    codes = np.tile(column, (40, 1))
    labels = np.where(rng.random(30) < 0.8, column, 1 - column)
    response, limits = Response.classes(labels, 2), TreeLimits(40, max_depth=1)
    chosen = np.zeros(40)
    n_trees = 8000
    for t in range(n_trees):
        chosen += grown(codes, response, limits, key_of(5, t)).importance > 0
    assert chosen.sum() == n_trees
    expected = n_trees / 40
    chi_square = ((chosen - expected) ** 2 / expected).sum()
    assert chi_square < 39 + 5 * np.sqrt(2 * 39)


def test_splits_that_decrease_nothing_are_made_and_count_for_nothing():
    """The parity of two bits: no first split decreases anything, the second decides."""
    a = np.array([0, 0, 1, 1] * 5, dtype=np.uint8)
    b = np.array([0, 1, 0, 1] * 5, dtype=np.uint8)
    firsts = np.zeros(2)
    for t in range(200):
        found = grown(np.stack([a, b]), Response.classes(a ^ b, 2), TreeLimits(2), t)
        assert found.n_leaves == 4
        np.testing.assert_allclose(sorted(found.importance / UNIT), [0.0, 0.5], atol=1e-9)
        firsts += found.importance == 0
    assert 60 < firsts[0] < 140


@pytest.mark.parametrize("impurity", ["gini", "entropy"])
def test_importances_of_a_full_tree_add_up_to_the_impurity(impurity):
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 250, (30, 300)).astype(np.uint8)
    labels = rng.integers(0, 4, 300)
    found = grown(codes, Response.classes(labels, 4), TreeLimits(30, impurity=impurity))
    shares = np.bincount(labels) / 300
    whole = 1 - (shares**2).sum() if impurity == "gini" else -(shares * np.log2(shares)).sum()
    assert found.importance.sum() / UNIT == pytest.approx(whole, abs=1e-6)
    assert found.n_nodes == 2 * found.n_leaves - 1


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
        found = grown(codes, Response.classes(labels, 3), TreeLimits(k), key_of(7, t))
        ours += found.importance / UNIT / 400
        our_nodes.append(found.n_nodes)
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
    with pytest.raises(ValueError, match="features, how many: expected 0 to 3, found 200"):
        grow_tree(block, np.arange(200, dtype=np.uint32), rows, 1, TreeLimits(1))


# Targets, weights, missing values, categories: the native kernel equals its reference exactly.


def tree_of_kind(problem, *, tiled, isa=""):
    asked = problem.codes, problem.training, problem.limits, problem.key
    how = {"features": problem.features, "values": problem.values, "tiled": tiled, "isa": isa}
    return grown(*asked, **how, record=True, categorical=problem.categorical)


def assert_native_equals_reference(problem):
    asked = problem.codes, problem.training, problem.features, problem.key, problem.limits
    kinds = {"categorical": problem.categorical, "values": problem.values}
    expected = grow_on(*asked, **kinds)
    for isa in instruction_sets():
        for tiled in (True, False):
            found = tree_of_kind(problem, tiled=tiled, isa=isa)
            np.testing.assert_array_equal(found.importance, expected.importance)
            assert (found.n_nodes, found.depth) == (expected.n_nodes, expected.depth)
            assert found.record == expected.record


@pytest.mark.slow
@examples(150)
@given(tree_problems())
def test_native_equals_reference_on_every_instruction_set_and_layout_of_every_kind(problem):
    assert_native_equals_reference(problem)


@examples(40)
@given(tree_problems(most_rows=700, most_columns=6))
def test_native_equals_reference_where_counters_are_flushed_and_codes_counted(problem):
    assert_native_equals_reference(problem)


def panel_of(problem, rng):
    """Codes as predicting sees them: NaN where missing, now and then a category not known."""
    missing = np.iinfo(problem.codes.dtype).max
    panel = problem.codes.astype(np.float64)
    panel[problem.codes == missing] = np.nan
    panel[rng.random(panel.shape) < 0.1] = np.nan
    if problem.categorical is not None:
        panel[problem.categorical[:, None] & (rng.random(panel.shape) < 0.1)] = -1
    return panel, missing


@examples(60)
@given(tree_problems())
def test_saved_trees_say_what_the_reference_says(problem):
    record = tree_of_kind(problem, tiled=True).record
    response = problem.training.response
    tree = decode_tree(record, regression=response.is_regression)
    ends = np.array([0]), np.array([len(record)])
    arrays = decode_trees(record, *ends, regression=response.is_regression)
    panel, missing = panel_of(problem, np.random.default_rng(0))
    column = {int(feature): i for i, feature in enumerate(problem.features)}
    slot = np.array([column.get(feature, -1) for feature in arrays.feature.tolist()])
    threshold = arrays.code.astype(np.float64)
    shares = np.zeros((panel.shape[1], response.n_classes))
    add_shares(arrays, slot, threshold, panel, shares, problem.codes.itemsize)
    for row in range(panel.shape[1]):

        def goes_left(split, row=row):
            value = panel[column[split.feature], row]
            code = missing if np.isnan(value) else None if value < 0 else int(value)
            return split.sends_left(code, missing)

        expected = [0.0] * response.n_classes
        reference_shares(tree, goes_left, expected)
        assert shares[row].tolist() == expected


def leaf_weights(problem, tree):
    """Training weight that reaches each leaf by the saved splits, in the order of leaves."""
    missing = np.iinfo(problem.codes.dtype).max
    column = {int(feature): i for i, feature in enumerate(problem.features)}
    response = problem.training.response
    is_weighted = response.n_channels == (2 if response.is_regression else 1)
    weights = response.channels[0] if is_weighted else np.ones(problem.codes.shape[1], np.int64)

    def walk(node, rows):
        if not isinstance(node, Split):
            return [int(weights[rows].sum())]
        codes = problem.codes[column[node.feature], rows].tolist()
        left = np.array([node.sends_left(code, missing) for code in codes], dtype=bool)
        return walk(node.left, rows[left]) + walk(node.right, rows[~left])

    return walk(tree, problem.training.order)


def leaves_of(node):
    return leaves_of(node.left) + leaves_of(node.right) if isinstance(node, Split) else [node]


@pytest.mark.slow
@examples(60)
@given(tree_problems())
def test_training_rows_go_the_way_they_went(problem):
    """Saved splits send every training row to the leaf it was counted in."""
    response = problem.training.response
    tree = decode_tree(tree_of_kind(problem, tiled=False).record, regression=response.is_regression)
    assert leaf_weights(problem, tree) == [leaf.n_rows for leaf in leaves_of(tree)]


@pytest.mark.parametrize("splitter", ["random", "best"])
@pytest.mark.parametrize("max_features", [400, 150])
def test_threads_change_nothing(splitter, max_features):
    """Large nodes are shared; 9 threads have more parts than there are tiles."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 250, (400, 1500)).astype(np.uint8)
    codes[:, rng.random(1500) < 0.1] = 255
    rows = TrainingRows.of(Response.targets(codes[3] + 50 * rng.random(1500)), "variance")
    limits = TreeLimits(max_features, 6, impurity="variance", splitter=splitter)
    plain = grown(codes, rows, limits, record=True)
    for n_threads in (2, 9):
        shared = grown(codes, rows, limits, record=True, n_threads=n_threads)
        assert shared.record == plain.record
        np.testing.assert_array_equal(shared.importance, plain.importance)


# Thresholds uniform between values: as likely as gaps are wide, and as scikit-learn's.


def roots(codes, values, n_trees=2000, *, tiled=True):
    rows = TrainingRows.of(Response.classes(np.arange(len(codes)) % 2, 2), "gini")
    block = block_of(codes[None], tiled=tiled, values=values[None])
    trees = (
        grown(block, rows, TreeLimits(1, 1), key_of(3, t), record=True) for t in range(n_trees)
    )
    return [decode_tree(tree.record) for tree in trees]


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
    asked = codes, Response.classes(rng.integers(0, 2, 60), 2), TreeLimits(70), 5
    values = rng.exponential(size=(70, 9)).cumsum(axis=1)
    plain, by_value = (
        grown(*asked, values=of, record=True, categorical=np.ones(70, dtype=bool))
        for of in (None, values)
    )
    assert plain.record == by_value.record


def test_equally_spaced_values_agree_with_ranks_in_law():
    """Mean importances of 300 trees, drawn by value and by code."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 30, (12, 200)).astype(np.uint8)
    labels = (codes[0] > 20).astype(int) ^ (rng.random(200) < 0.1)
    response = Response.classes(labels, 2)
    even = np.tile(np.arange(30, dtype=np.float32) * 3 - 7, (12, 1))
    means = []
    for number, values in enumerate((None, even)):
        block = block_of(codes, tiled=True, values=values)
        trees = [grown(block, response, TreeLimits(12), key_of(number, t)) for t in range(300)]
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
    ours, ranks, theirs = np.zeros(8), np.zeros(8), np.zeros(8)
    for t in range(400):
        ours += grown(block, rows, TreeLimits(1), key_of(t)).importance / UNIT
        ranks += grown(by_rank, rows, TreeLimits(1), key_of(t)).importance / UNIT
        peer = tree.ExtraTreeClassifier(max_features=1, random_state=t).fit(values.T, labels)
        theirs += peer.tree_.compute_feature_importances(normalize=False)
    np.testing.assert_allclose(ours / 400, theirs / 400, atol=0.012)
    assert np.abs(ranks / 400 - theirs / 400).max() > 0.03


def test_values_of_every_column_are_needed():
    codes = np.zeros((3, 10), dtype=np.uint8)
    rows = TrainingRows.of(Response.classes(np.arange(10) % 2, 2), "gini")
    block = block_of(codes, tiled=True, values=np.zeros((3, 4)))
    block.values = block.values[:3]
    with pytest.raises(ValueError, match="values: expected"):
        grow_tree(block, np.arange(3, dtype=np.uint32), rows, 1, TreeLimits(3))


def test_a_block_may_change_its_layout_between_trees():
    """Networks use one memory for both layouts."""
    codes = np.random.default_rng(3).integers(0, 9, (70, 30)).astype(np.uint8)
    rows = TrainingRows.of(Response.classes(np.arange(30) % 2, 2), "gini")
    asked = np.arange(70, dtype=np.uint32), rows, 1, TreeLimits(5)
    expected = grow_tree(block_of(codes, tiled=False), *asked).importance
    block = block_of(codes, tiled=True)
    np.testing.assert_array_equal(grow_tree(block, *asked).importance, expected)
    block.tiled = False
    block.codes[: codes.size] = codes.ravel()
    np.testing.assert_array_equal(grow_tree(block, *asked).importance, expected)


# Forests grown in one call: their Python twin, their parts, and scikit-learn's forests.

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
    asked = codes, rows, features, 5, limits
    expected = reference.grow_forest(*asked, trees=range(3), bootstrap=bootstrap)
    how = {"tiled": tiled, "features": features, "isa": isa, "bootstrap": bootstrap}
    parts = [grown(codes, rows, limits, 5, trees=of, **how) for of in (range(1), range(1, 3))]
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
    trees = grown(codes, rows, limits, trees=range(n_trees), bootstrap=bootstrap)
    ours = np.ldexp(trees.importance / n_trees, -IMPORTANCE_BITS)
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
    trees = grown(codes, rows, limits, 2, trees=range(1), bootstrap=True)
    sample = rows.resampled(2)  # a tree grown whole explains all of its sample's variance
    expected = sample.root_scale / rows.root_scale
    assert np.ldexp(trees.importance.sum(), -IMPORTANCE_BITS) == pytest.approx(expected, rel=1e-6)


def equals_the_twin(codes, rows, features, limits, isa):
    expected = reference.grow_on(codes, rows, features, 9, limits).importance
    for tiled in (False, True):
        how = {"features": features, "tiled": tiled, "isa": isa, "trees": range(1)}
        np.testing.assert_array_equal(grown(codes, rows, limits, 9, **how).importance, expected)


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
        equals_the_twin(
            codes, rows, features, TreeLimits(k, 4, least, "variance", 0, splitter), isa
        )


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
        equals_the_twin(codes, rows, features, TreeLimits(k, 2, least, "variance", 0, "best"), isa)

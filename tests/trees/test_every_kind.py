"""Targets, weights, missing values, categories: the native kernel equals its reference exactly."""

import numpy as np
import pytest
from examples import examples
from forest_reference import Split, decode_tree
from forest_reference import add_shares as reference_shares
from hypothesis import given
from problems import block_of, tree_problems
from tree_reference import grow_on

from srs_ooc.trees.kernel import grow_tree, instruction_sets
from srs_ooc.trees.response import Response, TrainingRows, TreeLimits
from srs_ooc.trees.saved import add_shares, decode_trees


def native_tree(problem, *, tiled, isa=""):
    return grow_tree(
        block_of(problem.codes, tiled=tiled, values=problem.values),
        problem.features,
        problem.training,
        problem.key,
        problem.limits,
        isa,
        record=True,
        categorical=problem.categorical,
    )


def assert_native_equals_reference(problem):
    expected = grow_on(
        problem.codes,
        problem.training,
        problem.features,
        problem.key,
        problem.limits,
        categorical=problem.categorical,
        values=problem.values,
    )
    for isa in instruction_sets():
        for tiled in (True, False):
            grown = native_tree(problem, tiled=tiled, isa=isa)
            np.testing.assert_array_equal(grown.importance, expected.importance)
            assert (grown.n_nodes, grown.depth) == (expected.n_nodes, expected.depth)
            assert grown.record == expected.record


@pytest.mark.slow
@examples(150)
@given(tree_problems())
def test_native_equals_reference_on_every_instruction_set_and_layout(problem):
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
    grown = native_tree(problem, tiled=True)
    response = problem.training.response
    tree = decode_tree(grown.record, regression=response.is_regression)
    ends = np.array([0]), np.array([len(grown.record)])
    arrays = decode_trees(grown.record, *ends, regression=response.is_regression)
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
    tree = decode_tree(native_tree(problem, tiled=False).record, regression=response.is_regression)
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
    block, features = block_of(codes, tiled=True), np.arange(400, dtype=np.uint32)
    plain = grow_tree(block, features, rows, 1, limits, record=True)
    for n_threads in (2, 9):
        shared = grow_tree(block, features, rows, 1, limits, record=True, n_threads=n_threads)
        assert shared.record == plain.record
        np.testing.assert_array_equal(shared.importance, plain.importance)

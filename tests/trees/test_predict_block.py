"""A tree says of rows of the block it was grown on what the reference says of their codes."""

import numpy as np
import pytest
from examples import examples
from forest_reference import add_shares, decode_tree
from hypothesis import given
from hypothesis import strategies as st
from problems import block_of, tree_problems

from srs_ooc.trees.kernel import grow_tree
from srs_ooc.trees.response import Response, TrainingRows
from srs_ooc.trees.saved import predict_block


@examples(60)
@given(tree_problems(most_rows=40, most_columns=90), st.booleans(), st.integers(0, 2**32))
def test_native_predictions_are_the_references(problem, tiled, seed):
    rng = np.random.default_rng(seed)
    order = np.argsort(problem.features)
    features, codes = problem.features[order], problem.codes[order]
    flags = None if problem.categorical is None else problem.categorical[order]
    n_rows, missing = codes.shape[1], np.iinfo(codes.dtype).max
    some = np.unique(problem.training.order)
    fitted = np.sort(rng.choice(some, max(1, len(some) // 2), replace=False)).astype(np.int32)
    training = problem.training.only(fitted)
    block = block_of(codes, tiled=tiled)
    grown = grow_tree(
        block, features, training, problem.key, problem.limits, record=True, categorical=flags
    )
    response = problem.training.response
    rows = np.sort(rng.choice(n_rows, n_rows // 2 + 1, replace=False)).astype(np.int32)
    regression = response.is_regression
    found = predict_block(
        grown.record, block, features, rows, response.n_classes, regression=regression
    )
    tree, places = (
        decode_tree(grown.record, regression=regression),
        dict(zip(features, codes, strict=True)),
    )
    for row, shares in zip(rows, found, strict=True):
        wanted = [0.0] * response.n_classes
        add_shares(tree, lambda s, r=row: s.sends_left(int(places[s.feature][r]), missing), wanted)
        assert shares.tolist() == wanted


def test_rows_and_columns_that_are_not_there_are_refused():
    codes = np.arange(20, dtype=np.uint8).reshape(2, 10)
    block, features = block_of(codes, tiled=False), np.array([4, 9], np.uint32)
    training = TrainingRows.of(Response.classes(np.arange(10) % 2, 2), "gini")
    from srs_ooc.trees.response import TreeLimits

    record = grow_tree(block, features, training, 1, TreeLimits(2), record=True).record
    one = np.array([3], np.int32)
    assert predict_block(record, block, features, one, 2).sum() == 1
    for rows in ([10], [-1]):
        with pytest.raises(ValueError, match="row"):
            predict_block(record, block, features, np.array(rows, np.int32), 2)
    with pytest.raises(ValueError, match="column"):
        predict_block(record, block, np.array([5, 8], np.uint32), one, 2)
    with pytest.raises(ValueError, match="class"):
        predict_block(record, block, features, one, 1)
    with pytest.raises(ValueError, match="cut short"):
        predict_block(record[:-1], block, features, one, 2)


@given(tree_problems(most_rows=30, most_columns=3), st.integers(0, 2**32))
def test_training_rows_of_a_part_are_those_of_a_table_of_that_part(problem, seed):
    n_rows = problem.codes.shape[1]
    rows = np.flatnonzero(np.random.default_rng(seed).random(n_rows) < 0.6).astype(np.int32)
    response = problem.training.response
    whole = TrainingRows.of(response, problem.limits.impurity)
    if not len(rows):
        return
    part = whole.only(rows)
    own = Response(
        response.labels[rows],
        response.n_classes,
        response.channels[:, rows],
        response.center,
        response.scale,
    )
    wanted = TrainingRows.of(own, problem.limits.impurity)
    assert part.order.tolist() == rows[wanted.order].tolist()
    assert part.root_stats.tolist() == wanted.root_stats.tolist()
    assert part.root_scale == wanted.root_scale

"""A tree on columns sorted once: the same, to the bit, as one grown and walked by the kernel."""

import numpy as np
import pytest
from examples import examples, given, st

from srs_ooc.base.records import Candidates, Iteration, RowSplit, Subspace
from srs_ooc.learners.tree_learner import Columns, TreeLearner, tree_key
from srs_ooc.trees.block import Block
from srs_ooc.trees.kernel import (
    grow_sorted,
    instruction_sets,
    judge_all_at_once,
    takes_sorted,
)
from srs_ooc.trees.response import Response, TrainingRows, TreeLimits

MANY = np.iinfo(np.int64).max


def make_block(rng, n_columns, n_rows, nbytes, n_codes, *, tiled, n_values=0):
    """A block and a function that writes its codes, (n_columns, n_rows)."""
    block = Block(n_columns, n_rows, nbytes, tiled=tiled, n_values=n_values)
    codes = rng.integers(0, n_codes, (n_columns, n_rows)).astype(f"u{nbytes}")
    write(block, codes)
    if block.values is not None:
        block.values[:n_columns] = np.sort(rng.normal(size=(n_columns, n_values)), axis=1)
    return block, codes


def write(block, codes):
    memory = block.codes.view(codes.dtype)
    if not block.tiled:
        memory[: codes.size].reshape(codes.shape)[:] = codes
        return
    tiles = memory.reshape(-1, block.n_rows, 64)
    for j, column in enumerate(codes):
        tiles[j // 64, :, j % 64] = column


def make_response(rng, codes, n_classes):
    n_rows = codes.shape[1]
    if n_classes == 1:
        return Response.targets(np.round(rng.normal(size=n_rows) + codes[0] / 3, 1))
    return Response.classes(rng.integers(0, n_classes, n_rows), n_classes)


def make_split(rng, n_rows, share, *, repeats):
    held = rng.random(n_rows) < share
    held[:2] = True, False
    fitted = np.flatnonzero(~held)
    if repeats:
        fitted = np.sort(rng.choice(fitted, n_rows))
    return RowSplit(fitted.astype(np.int32), np.flatnonzero(held).astype(np.int32))


TABLES = {
    "seed": st.integers(0, 2**32 - 1),
    "nbytes": st.sampled_from([1, 2]),
    "n_codes": st.sampled_from([2, 5, 200]),
    "n_classes": st.sampled_from([1, 2, 4]),
    "repeats": st.booleans(),
    "max_depth": st.sampled_from([None, 1, 3]),
}
LEAST = st.sampled_from([1, 3, 50])


def ask(block, features, rows, predicted, key, limits, **how):
    learner, columns = TreeLearner(rows, limits, MANY), Columns(features, features)
    return learner._ask(block, columns, rows, RowSplit(rows.order, predicted), key, **how)


@examples(60)
@given(**TABLES, tiled=st.booleans(), values=st.booleans(), min_samples_leaf=LEAST)
def test_it_says_what_the_recorded_tree_says_on_every_instruction_set(
    seed, nbytes, n_codes, n_classes, tiled, values, repeats, max_depth, min_samples_leaf
):
    rng = np.random.default_rng(seed)
    n_rows, n_columns = int(rng.integers(8, 150)), int(rng.integers(1, 70))
    n_values = n_codes if values else 0
    shape = n_columns, n_rows, nbytes, n_codes
    block, codes = make_block(rng, *shape, tiled=tiled, n_values=n_values)
    response = make_response(rng, codes, n_classes)
    impurity = "variance" if n_classes == 1 else "gini"
    split = make_split(rng, n_rows, 0.4, repeats=repeats)
    rows = TrainingRows.of(response, impurity).only(split.fitted)
    limits = TreeLimits(MANY, max_depth, min_samples_leaf, impurity, 0, "best")
    features = np.sort(rng.choice(1000, n_columns, replace=False)).astype(np.uint32)
    asked = block, features, rows, split.predicted, seed, limits
    importance, shares, _ = ask(*asked, records=True)
    for isa in instruction_sets():
        said = grow_sorted(*asked, isa)
        assert said is not None
        assert said[0].tolist() == importance.tolist()
        assert said[1].tolist() == shares.tolist()


@pytest.mark.parametrize("case", ["missing", "weights", "entropy", "drawn", "none"])
def test_what_it_does_not_take_is_grown_by_the_kernel(case):
    rng = np.random.default_rng(3)
    block, codes = make_block(rng, 5, 60, 1, 40, tiled=False)
    if case == "missing":
        codes[2, 7] = 255
        write(block, codes)
    weights = rng.integers(1, 4, 60).astype(float) if case == "weights" else None
    response = Response.classes((codes[1] < 20).astype(int), 2, weights)
    impurity = "entropy" if case == "entropy" else "gini"
    splitter = "random" if case == "drawn" else "best"
    limits = TreeLimits(MANY, impurity=impurity, splitter=splitter)
    rows = TrainingRows.of(response, impurity).only(np.arange(40, dtype=np.int32))
    features = np.arange(0 if case == "none" else 5, dtype=np.uint32)
    asked = block, features, rows, np.arange(40, 60, dtype=np.int32), 9, limits
    if case == "missing":
        assert grow_sorted(*asked) is None
    else:
        assert not takes_sorted(block, len(features), rows, 20, limits)
    worth, expected, record = ask(*asked, records=True)
    importance, shares, kept = ask(*asked)
    assert record
    assert kept is None
    assert (importance.tolist(), shares.tolist()) == (worth.tolist(), expected.tolist())


def test_wide_blocks_are_left_to_the_kernel_whose_scratch_does_not_grow_with_them():
    rng = np.random.default_rng(3)
    block, codes = make_block(rng, 3000, 100, 1, 40, tiled=True)
    rows = TrainingRows.of(Response.classes((codes[1] < 20).astype(int), 2), "gini")
    limits = TreeLimits(MANY, splitter="best")
    assert takes_sorted(block, 50, rows, 20, limits)
    assert not takes_sorted(block, 3000, rows, 20, limits)


# Held-out losses of many small subsets in one call: what whole trees, grown one by one, say.


def make_block_subsets(rng, n_columns, n_rows, nbytes, n_codes):
    block = Block(n_columns, n_rows, nbytes, tiled=False)
    codes = block.codes.view(f"u{nbytes}")[: n_columns * n_rows].reshape(n_columns, n_rows)
    codes[:] = rng.integers(0, n_codes, codes.shape)
    return block, codes


def make_splits(rng, n_rows, n_splits, *, repeats):
    return tuple(make_split(rng, n_rows, 0.3, repeats=repeats) for _ in range(n_splits))


def make_candidates(rng, n_columns, n_candidates, splits):
    subsets = [
        np.sort(rng.choice(n_columns, rng.integers(1, min(n_columns, 7) + 1), replace=False))
        for _ in range(n_candidates)
    ]
    bounds = np.cumsum([0, *map(len, subsets)]).astype(np.int64)
    return Candidates(np.concatenate(subsets).astype(np.int32), bounds, splits)


@examples(40)
@given(
    **TABLES,
    min_samples_leaf=st.sampled_from([1, 3]),
    n_rows=st.sampled_from([0, 0, 0, 300, 600]),
    far_apart=st.booleans(),
)
def test_one_call_says_what_whole_trees_say_on_every_instruction_set(
    seed, nbytes, n_codes, n_classes, repeats, max_depth, min_samples_leaf, n_rows, far_apart
):
    rng = np.random.default_rng(seed)
    n_rows, n_columns = n_rows or int(rng.integers(12, 90)), 9
    block, codes = make_block_subsets(rng, n_columns, n_rows, nbytes, n_codes)
    if n_classes == 1:
        numbers = np.round(rng.normal(size=n_rows) + codes[2], 1)
        numbers += 1e6 * rng.choice([-1, 1], n_rows) * far_apart  # sums need more than 32 bits
        response = Response.targets(numbers)
    else:
        response = Response.classes(rng.integers(0, n_classes, n_rows), n_classes)
    impurity = "variance" if n_classes == 1 else "gini"
    splits = make_splits(rng, n_rows, 3, repeats=repeats)
    candidates = make_candidates(rng, n_columns, 8, splits)
    limits = TreeLimits(MANY, max_depth, min_samples_leaf, impurity, 0, "best")
    learner = TreeLearner(TrainingRows.of(response, impurity), limits, n_columns, candidates=True)
    features = np.sort(rng.choice(1000, n_columns, replace=False)).astype(np.uint32)
    expected = learner._in_turn(block, Columns(features, features), candidates, 77)
    keys = np.array([tree_key(77, number) for number in range(3)], np.uint64)
    for isa in instruction_sets():
        found = judge_all_at_once(block, features, candidates, response, keys, limits, isa)
        assert found is not None
        assert found[0].tolist() == expected.tolist()
        assert 8 <= found[1] <= 24
    assert np.isfinite(expected).any()


def judged(learner, block, features, candidates):
    subspace = Subspace(features, candidates=candidates)
    return learner.fit(block, Columns(features, features), Iteration(0, subspace, 5)).losses


@pytest.mark.parametrize(
    "case", ["plain", "missing", "categories", "weights", "bootstrap", "trees"]
)
def test_the_least_loss_is_that_of_the_informative_columns(case):
    rng = np.random.default_rng(5)
    n_rows, features = 80, np.arange(12, dtype=np.uint32)
    block, codes = make_block_subsets(rng, 12, n_rows, 1, 40)
    labels = ((codes[3] < 20) ^ (codes[7] < 20)).astype(np.int32)
    weights = rng.integers(1, 4, n_rows).astype(float) if case == "weights" else None
    categorical = np.zeros(12, bool)
    if case == "missing":
        codes[:, ::9] = 255
    if case == "categories":
        categorical[5] = True
    response = Response.classes(labels, 2, weights)
    learner = TreeLearner(
        TrainingRows.of(response, "gini"),
        TreeLimits(MANY, splitter="best"),
        12,
        n_trees=3 if case == "trees" else 1,
        bootstrap=case == "bootstrap",
        categorical=categorical,
        candidates=True,
    )
    subsets = [[1, 2], [3, 7], [3, 5], [7, 9, 10]]
    bounds = np.array([0, 2, 4, 6, 9])
    splits = make_splits(rng, n_rows, 4, repeats=False)
    candidates = Candidates(np.concatenate(subsets).astype(np.int32), bounds, splits)
    losses = judged(learner, block, features, candidates)
    assert losses.argmin() == 1
    assert losses[1] < 0.35
    one = (Candidates(np.array(s, np.int32), np.array([0, len(s)]), splits) for s in subsets)
    alone = [judged(learner, block, features, candidates) for candidates in one]
    for loss, own in zip(losses, np.concatenate(alone), strict=True):
        assert loss == own or (np.isinf(loss) and own > losses[1])


def test_columns_of_either_layout_are_copied():
    rng = np.random.default_rng(1)
    for tiled in (False, True):
        block = Block(70, 11, 2, tiled=tiled, n_values=3)
        block.codes[:] = rng.integers(0, 200, len(block.codes))
        block.values[:] = rng.random(block.values.shape)
        some = np.array([3, 65, 69], np.int32)
        own = block.only(some)
        assert np.array_equal(own.as_columns(), block.as_columns()[some])
        assert np.array_equal(own.values[:3], block.values[some])

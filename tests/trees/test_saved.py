"""Saved trees: bytes to arrays and rows walked down them, as the Python reference says."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples, given, st
from forest_reference import (
    PROBE,
    Leaf,
    Split,
    TargetLeaf,
    class_changes,
    decode_tree,
    effects_of,
    encode_tree,
    target_change,
)
from forest_reference import add_shares as reference_shares
from problems import block_of, tree_problems
from refusals import refused

from srs_ooc.native import _native
from srs_ooc.trees.kernel import grow_tree
from srs_ooc.trees.response import Response, TrainingRows, TreeLimits
from srs_ooc.trees.saved import (
    CLASS_BITS,
    LEAF,
    NO_VOTES,
    PROBE_SPLIT,
    TARGET_BITS,
    Effects,
    How,
    add_effects,
    add_shares,
    decode_trees,
    tally_changes,
)

N_CLASSES = 4


def leaves_of(n_classes, most):
    counts = st.tuples(st.integers(0, n_classes - 1), st.integers(1, most))
    pairs = st.lists(counts, min_size=1, unique_by=lambda pair: pair[0])
    return pairs.map(lambda some: Leaf(tuple(sorted(some))))


features = st.sampled_from([0, 1, 126, 127, 128, 5_000_000, PROBE - 1, PROBE])
trees = st.recursive(
    leaves_of(N_CLASSES, 10**6),
    lambda node: st.builds(Split, features, st.integers(0, 65_534), node, node),
)


def decoded(records, between=b"??", *, regression=False):
    records = [*records]
    sizes = np.array([len(record) for record in records])
    stops = (sizes + len(between)).cumsum() - len(between)
    ends = (stops - sizes).astype(np.int64), stops.astype(np.int64)
    return decode_trees(between.join(records), *ends, regression=regression)


def preorder(node):
    yield node
    if isinstance(node, Split):
        yield from preorder(node.left)
        yield from preorder(node.right)


@examples(80)
@given(st.lists(trees, min_size=1, max_size=4), st.integers(0, 2**32))
def test_native_equals_reference(forest, seed):
    records = [encode_tree(tree) for tree in forest]
    assert [decode_tree(record) for record in records] == forest
    arrays = decoded(records)
    nodes = [node for tree in forest for node in preorder(tree)]
    assert arrays.n_rows.tolist() == [node.n_rows for node in nodes]
    names = [
        LEAF if isinstance(n, Leaf) else PROBE_SPLIT if n.feature == PROBE else n.feature
        for n in nodes
    ]
    assert arrays.feature.tolist() == names
    used = sorted({name for name in names if name >= 0})
    slot = np.array([used.index(name) if name >= 0 else name for name in names])
    thresholds = arrays.code.astype(np.float64)
    panel = np.random.default_rng(seed).integers(0, 65_535, (len(used), 9)).astype(np.float64)
    shares = np.zeros((7, N_CLASSES))
    add_shares(arrays, slot, thresholds, panel, shares)
    for row in range(7):
        expected = [0.0] * N_CLASSES
        for tree in forest:
            reference_shares(
                tree,
                lambda split, row=row: panel[used.index(split.feature), row] <= split.code,
                expected,
            )
        assert shares[row].tolist() == expected


def test_both_sides_of_a_split_on_the_probe_count_by_their_rows():
    tree = Split(PROBE, 3, Leaf(((0, 6),)), Split(0, 1, Leaf(((1, 1),)), Leaf(((0, 1),))))
    arrays = decoded([encode_tree(tree)])
    shares = np.zeros((2, 2))
    slot = np.where(arrays.feature > 0, 0, arrays.feature)
    add_shares(arrays, slot, arrays.code.astype(float), np.array([[1.0, 2.0]]), shares)
    assert shares.tolist() == [[0.75, 0.25], [1.0, 0.0]]


def test_bytes_that_are_no_tree_are_refused():
    whole = encode_tree(Split(300, 2, Leaf(((0, 6),)), Leaf(((1, 500),))))
    for cut in range(len(whole)):
        refused(ValueError, "cut short", decoded, [whole[:cut]])
    refused(ValueError, "more bytes", decoded, [whole + b"\0"])
    for leaf in (((2**31, 1),), ((0, 2**31),), ((0, 2**63 - 1), (1, 1))):
        with pytest.raises(ValueError, match="too large"):
            decoded([encode_tree(Split(300, 2, Leaf(leaf), Leaf(((1, 500),))))])


def test_a_walk_never_leaves_its_arrays():
    arrays = decoded([encode_tree(Split(0, 2, Leaf(((0, 6),)), Leaf(((9, 5),))))])
    slot, threshold = arrays.feature, np.zeros(3)
    for panel, shares, message in (
        ((0, 1), (1, 10), r"slot\[0\]"),
        ((1, 1), (1, 2), "class"),
        ((1, 1), (2, 10), "rows"),
    ):
        with pytest.raises(ValueError, match=message):
            add_shares(arrays, slot, threshold, np.zeros(panel), np.zeros(shares))


# A tree says of rows of the block it was grown on what the reference says of their codes.


def predict_block(record, block, features, rows, n_classes, *, regression=False):
    shares = np.zeros((len(rows), n_classes))
    data = np.frombuffer(record, np.uint8)
    _native.predict_block(data, regression, block.native, features, rows, shares)
    return shares


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
        reference_shares(
            tree, lambda s, r=row: s.sends_left(int(places[s.feature][r]), missing), wanted
        )
        assert shares.tolist() == wanted


def test_rows_and_columns_that_are_not_there_are_refused():
    codes = np.arange(20, dtype=np.uint8).reshape(2, 10)
    block, features = block_of(codes, tiled=False), np.array([4, 9], np.uint32)
    training = TrainingRows.of(Response.classes(np.arange(10) % 2, 2), "gini")
    record = grow_tree(block, features, training, 1, TreeLimits(2), record=True).record
    one = np.array([3], np.int32)
    assert predict_block(record, block, features, one, 2).sum() == 1
    for message, *asked in (
        ("row", record, features, np.array([10], np.int32), 2),
        ("row", record, features, np.array([-1], np.int32), 2),
        ("column", record, np.array([5, 8], np.uint32), one, 2),
        ("class", record, features, one, 1),
        ("cut short", record[:-1], features, one, 2),
    ):
        refused(ValueError, message, predict_block, asked[0], block, *asked[1:])


@given(tree_problems(most_rows=30, most_columns=3), st.integers(0, 2**32))
def test_training_rows_of_a_part_are_those_of_a_table_of_that_part(problem, seed):
    n_rows = problem.codes.shape[1]
    rows = np.flatnonzero(np.random.default_rng(seed).random(n_rows) < 0.6).astype(np.int32)
    response = problem.training.response
    whole = TrainingRows.of(response, problem.limits.impurity)
    if not len(rows):
        return
    part = whole.only(rows)
    own = replace(response, labels=response.labels[rows], channels=response.channels[:, rows])
    wanted = TrainingRows.of(own, problem.limits.impurity)
    assert part.order.tolist() == rows[wanted.order].tolist()
    assert part.root_stats.tolist() == wanted.root_stats.tolist()
    assert part.root_scale == wanted.root_scale


# Effects of altering features: one native walk equals the definition, tree by tree, to the bit.

N_CLASSES_SENSITIVITY, N_ROWS = 3, 7
FEATURES = [0, 1, 5, 6, 126, 5_000_000]
leaves_sensitivity = leaves_of(N_CLASSES_SENSITIVITY, 10**4)
target_leaves = st.builds(
    TargetLeaf, st.integers(1, 1000), st.integers(-(2**23) * 1000, 2**23 * 1000)
)


def splits(node):
    return st.builds(
        Split,
        st.sampled_from([*FEATURES, PROBE]),
        st.integers(1, 9),
        node,
        node,
        st.sampled_from(list(How)),
        st.integers(0, 2**32 - 1),
    ).map(lambda s: s if s.how == How.MAPPED else Split(s.feature, s.code, s.left, s.right, s.how))


class_trees = st.recursive(leaves_sensitivity, splits, max_leaves=12)
target_trees = st.recursive(target_leaves, splits, max_leaves=12)


def panels(seed, dtype):
    """Codes as they are and altered; some are missing."""
    missing = np.iinfo(dtype).max
    draws = np.random.default_rng(seed).integers(0, 12, (2, len(FEATURES), N_ROWS))
    return np.where(draws == 11, missing, draws).astype(dtype)


def native(forest, codes, altered, votes=NO_VOTES, *, regression=False, n_threads=1):
    arrays = decoded(map(encode_tree, forest), b"", regression=regression)
    slot = arrays.feature.copy()
    slot[slot >= 0] = np.searchsorted(FEATURES, slot[slot >= 0])
    out = Effects(N_ROWS, len(FEATURES), 1 if regression else N_CLASSES_SENSITIVITY)
    add_effects(
        arrays, slot, codes, altered, out, votes, regression=regression, n_threads=n_threads
    )
    return out


def expected(forest, codes, altered, row, *, regression=False):
    place = {feature: i for i, feature in enumerate(FEATURES)}
    return effects_of(
        forest,
        lambda f: int(codes[place[f], row]),
        lambda f: int(altered[place[f], row]),
        int(np.iinfo(codes.dtype).max),
        TARGET_BITS if regression else CLASS_BITS,
        1 if regression else N_CLASSES_SENSITIVITY,
    )


@examples(60)
@given(
    st.lists(class_trees, min_size=1, max_size=4),
    st.integers(0, 2**32),
    st.sampled_from([np.uint8, np.uint16]),
)
def test_one_walk_finds_the_effects_of_all_features_of_classes(forest, seed, dtype):
    codes, altered = panels(seed, dtype)
    rng = np.random.default_rng(seed + 1)
    votes = rng.integers(0, 2, (len(forest), N_ROWS)).astype(np.uint8)
    truth = rng.integers(0, N_CLASSES_SENSITIVITY, N_ROWS)
    out = native(forest, codes, altered, votes, n_threads=1 + seed % 3)
    tally = np.zeros((len(FEATURES), 3), np.int64)
    tally_changes(out, truth, tally, n_threads=1 + seed % 3)
    sums = np.zeros_like(tally)
    for row in range(N_ROWS):
        voting = [tree for tree, vote in zip(forest, votes[:, row], strict=True) if vote]
        base, effects = expected(voting, codes, altered, row)
        assert out.base[row].tolist() == base
        assert out.n_votes[row] == len(voting)
        for i, feature in enumerate(FEATURES):
            added = effects[feature]
            assert out.effects[row].reshape(-1, N_CLASSES_SENSITIVITY)[i].tolist() == added
            if voting:
                sums[i] += class_changes(base, added, len(voting), int(truth[row]))
    np.testing.assert_array_equal(tally, sums)


@examples(40)
@given(st.lists(target_trees, min_size=1, max_size=4), st.integers(0, 2**32))
def test_one_walk_finds_the_effects_of_all_features_of_targets(forest, seed):
    codes, altered = panels(seed, np.uint8)
    truth = np.random.default_rng(seed).standard_normal(N_ROWS)
    out = native(forest, codes, altered, regression=True)
    tally = np.zeros((len(FEATURES), 3), np.int64)
    tally_changes(out, truth, tally, 23, 2)
    unit, sums = 2.0 ** -(TARGET_BITS + 23), [0] * len(FEATURES)
    for row in range(N_ROWS):
        base, effects = expected(forest, codes, altered, row, regression=True)
        assert out.base[row].tolist() == base
        for i, feature in enumerate(FEATURES):
            assert out.effects[row, i] == effects[feature][0]
            added = effects[feature][0]
            sums[i] += target_change(base[0], added, len(forest), float(truth[row]), unit)
    assert tally[:, 2].tolist() == sums


def test_a_feature_that_is_not_altered_has_no_effect_at_all():
    forest = [Split(0, 3, Leaf(((0, 3), (1, 4))), Split(1, 2, Leaf(((1, 7),)), Leaf(((2, 3),))))]
    codes, altered = panels(3, np.uint8)
    altered[0] = codes[0]
    out = native(forest * 9, codes, altered)
    assert not out.effects.reshape(N_ROWS, -1, N_CLASSES_SENSITIVITY)[:, 0].any()
    assert out.effects.any()


def test_arrays_that_do_not_fit_are_refused():
    forest = [Split(0, 2, Leaf(((0, 6),)), Leaf(((1, 5),)))]
    codes, altered = panels(0, np.uint8)
    arrays = decoded(map(encode_tree, forest), b"", regression=False)
    few, out = (Effects(N_ROWS, len(FEATURES), n) for n in (1, 2))
    votes = np.ones((2, N_ROWS), np.uint8)
    for message, *asked in (
        (r"slot\[0\]", arrays.feature + 9, codes, altered, out),
        ("class", arrays.feature, codes, altered, few),
        ("codes: expected shape", arrays.feature, codes[:, 1:].copy(), altered, out),
        ("votes: expected shape", arrays.feature, codes, altered, out, votes),
    ):
        refused(ValueError, message, add_effects, arrays, *asked)
    with pytest.raises(ValueError, match=r"truth\[0\]"):
        tally_changes(out, np.full(N_ROWS, 5), np.zeros((len(FEATURES), 3), np.int64))

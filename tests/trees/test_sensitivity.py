"""Effects of altering features: one native walk equals the definition, tree by tree, to the bit."""

import numpy as np
import pytest
from examples import examples
from forest_reference import (
    PROBE,
    Leaf,
    Split,
    TargetLeaf,
    class_changes,
    effects_of,
    encode_tree,
    target_change,
)
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.trees.saved import (
    CLASS_BITS,
    NO_VOTES,
    TARGET_BITS,
    Effects,
    How,
    add_effects,
    decode_trees,
    tally_classes,
    tally_targets,
)

N_CLASSES, N_ROWS = 3, 7
FEATURES = [0, 1, 5, 6, 126, 5_000_000]
leaves = st.lists(
    st.tuples(st.integers(0, N_CLASSES - 1), st.integers(1, 10**4)),
    min_size=1,
    unique_by=lambda pair: pair[0],
).map(lambda pairs: Leaf(tuple(sorted(pairs))))
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


class_trees = st.recursive(leaves, splits, max_leaves=12)
target_trees = st.recursive(target_leaves, splits, max_leaves=12)


def decoded(forest, *, regression):
    records = [encode_tree(tree) for tree in forest]
    stops = np.cumsum([len(record) for record in records])
    starts = np.append(0, stops[:-1])
    return decode_trees(
        b"".join(records), starts.astype(np.int64), stops.astype(np.int64), regression=regression
    )


def panels(seed, dtype):
    """Codes as they are and altered; some are missing."""
    missing = np.iinfo(dtype).max
    draws = np.random.default_rng(seed).integers(0, 12, (2, len(FEATURES), N_ROWS))
    return np.where(draws == 11, missing, draws).astype(dtype)


def native(forest, codes, altered, votes=NO_VOTES, *, regression=False, n_threads=1):
    arrays = decoded(forest, regression=regression)
    slot = arrays.feature.copy()
    slot[slot >= 0] = np.searchsorted(FEATURES, slot[slot >= 0])
    out = Effects.none(N_ROWS, len(FEATURES), 1 if regression else N_CLASSES)
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
        1 if regression else N_CLASSES,
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
    truth = rng.integers(0, N_CLASSES, N_ROWS)
    out = native(forest, codes, altered, votes, n_threads=1 + seed % 3)
    tally = np.zeros((len(FEATURES), 3), np.int64)
    tally_classes(out, truth, tally, 1 + seed % 3)
    sums = np.zeros_like(tally)
    for row in range(N_ROWS):
        voting = [tree for tree, vote in zip(forest, votes[:, row], strict=True) if vote]
        base, effects = expected(voting, codes, altered, row)
        assert out.base[row].tolist() == base
        assert out.n_votes[row] == len(voting)
        for i, feature in enumerate(FEATURES):
            added = effects[feature]
            assert out.effects[row].reshape(-1, N_CLASSES)[i].tolist() == added
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
    tally_targets(out, truth, 23, tally, 2)
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
    assert not out.effects.reshape(N_ROWS, -1, N_CLASSES)[:, 0].any()
    assert out.effects.any()


def test_arrays_that_do_not_fit_are_refused():
    forest = [Split(0, 2, Leaf(((0, 6),)), Leaf(((1, 5),)))]
    codes, altered = panels(0, np.uint8)
    arrays = decoded(forest, regression=False)
    out = Effects.none(N_ROWS, len(FEATURES), 2)
    with pytest.raises(ValueError, match="column"):
        add_effects(arrays, arrays.feature + 9, codes, altered, out)
    few = Effects.none(N_ROWS, len(FEATURES), 1)
    with pytest.raises(ValueError, match="class"):
        add_effects(arrays, arrays.feature, codes, altered, few)
    with pytest.raises(ValueError, match="rows"):
        add_effects(arrays, arrays.feature, codes[:, 1:].copy(), altered, out)
    with pytest.raises(ValueError, match="rows"):
        add_effects(arrays, arrays.feature, codes, altered, out, np.ones((2, N_ROWS), np.uint8))
    with pytest.raises(ValueError, match="class"):
        tally_classes(out, np.full(N_ROWS, 5), np.zeros((len(FEATURES), 3), np.int64))

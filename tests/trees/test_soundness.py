"""Missing values and categories draw no importance by themselves, and are found if they matter."""

import itertools

import numpy as np
import pytest
from forest_reference import map_categories
from problems import block_of

from srs_ooc.base.seeds import key_of
from srs_ooc.trees.kernel import grow_tree
from srs_ooc.trees.response import IMPORTANCE_BITS, Response, TrainingRows, TreeLimits

MISSING = 255


def mean_importance(codes, response, limits, n_trees, *, categorical=None, seed=0):
    rows = TrainingRows.of(response, limits.impurity)
    block, features = block_of(codes, tiled=True), np.arange(len(codes), dtype=np.uint32)
    total = np.zeros(len(codes))
    for t in range(n_trees):
        key = key_of(seed, t)
        grown = grow_tree(block, features, rows, key, limits, categorical=categorical)
        total += grown.importance
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
    limits, features = TreeLimits(1, max_depth=1), np.zeros(1, dtype=np.uint32)
    grouped = {}
    for t in range(4000):
        record = grow_tree(block, features, rows, key_of(9, t), limits, record=True).record
        grouped[record] = grouped.get(record, 0) + 1
    assert len(grouped) == 8  # four cuts with missing values above, four below
    assert min(grouped.values()) > 400


@pytest.mark.few(1)
@pytest.mark.parametrize("missing", [255, 65_535])
@pytest.mark.parametrize("codes", [[0, 1, 2], [0, 1, 2, 3, None], [7, 8, 9, 10, 11]])
def test_every_binary_partition_of_few_categories_occurs(codes, missing):
    """And those of equal size about equally often, so that names do not matter."""
    codes = np.array([missing if code is None else code for code in codes])
    rng, counts, n_keys = np.random.default_rng(0), {}, 20_000
    for hash_, draw in zip(rng.integers(0, 2**32, n_keys), rng.random(n_keys), strict=True):
        seen = map_categories(codes, int(hash_), missing)
        threshold = seen.min() + int(draw * (seen.max() - seen.min()))
        left = tuple(np.flatnonzero(seen <= threshold))
        right = tuple(np.flatnonzero(seen > threshold))
        side = min(left, right, key=lambda part: (len(part), part))
        counts[side] = counts.get(side, 0) + 1
    n = len(codes)
    for size in range(1, n // 2 + 1):
        sides = [
            side for side in itertools.combinations(range(n), size)
            if 2 * size < n or 0 in side
        ]  # fmt: skip
        found = np.array([counts.get(side, 0) for side in sides])
        assert (np.abs(found / found.mean() - 1) < 0.15).all(), (size, found)


def test_the_bijection_of_categories_is_one():
    for missing in (255, 65_535):
        for hash_ in (0, 1, 0xDEADBEEF):
            assert len(np.unique(map_categories(np.arange(missing + 1), hash_, missing))) == (
                missing + 1
            )


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

"""Closing trees scored by sensitivity: by the definition."""

from dataclasses import replace

import numpy as np
import pytest
from forest_reference import decode_tree, effects_of, features_of
from problems import block_of

import srs_ooc.extend as core
from srs_ooc.base.records import Iteration, Subspace
from srs_ooc.base.seeds import Purpose, derive, derive_array
from srs_ooc.learners.tree_learner import Columns, TreeLearner
from srs_ooc.methods.rfest.rfest import SensitiveLearner
from srs_ooc.testing import check_learner
from srs_ooc.trees.response import Response, TrainingRows, TreeLimits
from srs_ooc.trees.saved import CLASS_BITS, TARGET_BITS

N_ROWS, N_COLUMNS, KEY = 60, 70, 99


def table(seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 9, (N_COLUMNS, N_ROWS)).astype(np.uint8)
    codes[::2] = codes[::2] > 4
    codes[rng.random(codes.shape) < 0.05] = 255
    return codes, np.where(codes[3] == 255, 0, codes[3] > 4).astype(np.int32)


def learner(*, regression):
    codes, labels = table()
    target = np.where(codes[3] == 255, 4, codes[3]) + 0.25 * codes[4].clip(0, 1)
    response = Response.targets(target.astype(float)) if regression else Response.classes(labels, 2)
    limits = TreeLimits(N_COLUMNS, 4, 2, impurity="variance" if regression else "gini")
    rows = TrainingRows.of(response, limits.impurity)
    return SensitiveLearner(TreeLearner(rows, limits, N_COLUMNS)), rows, limits


def iteration(features):
    return Iteration(0, Subspace(features), KEY)


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("tiled", [False, True])
def test_a_score_is_what_altering_the_item_costs_on_the_rows_left_out(
    monkeypatch, regression, tiled
):
    codes, labels = table()
    features = np.arange(10, 10 + N_COLUMNS, dtype=np.uint32)
    learning, rows, limits = learner(regression=regression)
    monkeypatch.setattr(core, "WORK_NBYTES", 3000)  # a few rows at a time
    block, columns = block_of(codes, tiled=tiled), Columns(features, features)
    found = learning.fit(block, columns, iteration(features)).importance
    drawn = rows.resampled(KEY)
    plain = TreeLearner(drawn, limits, N_COLUMNS, records=True)
    record = plain.fit(block, columns, iteration(features)).trees[0]
    tree = decode_tree(record, regression=regression)
    asked = np.setdiff1d(np.arange(N_ROWS), drawn.order)
    other = asked[np.argsort(derive_array(derive(KEY, Purpose.ALTERED), asked), kind="stable")]
    flips = np.where(codes == 255, 0, codes).max(axis=1) <= 1
    lost = np.zeros(N_COLUMNS)
    target = rows.response.channels[-1] if regression else None
    for row, partner in zip(asked, other, strict=True):

        def as_it_is(f, row=row):
            return int(codes[f - 10, row])

        def altered(f, row=row, partner=partner):
            code = int(codes[f - 10, row])
            if not flips[f - 10]:
                return int(codes[f - 10, partner])
            return code if code == 255 else 1 - code

        bits, n_outputs = (TARGET_BITS, 1) if regression else (CLASS_BITS, 2)
        base, effects = effects_of([tree], as_it_is, altered, 255, bits, n_outputs)
        for f, added in effects.items():
            if regression:
                before, after = (x / 2**bits - target[row] for x in (base[0], base[0] + added[0]))
                lost[f - 10] += after**2 - before**2
            else:
                lost[f - 10] -= added[labels[row]] / 2**bits
    scale = float(((target - target.mean()) ** 2).mean()) if regression else 1.0
    assert lost.any()
    assert set(np.flatnonzero(found) + 10) <= features_of(tree)
    np.testing.assert_allclose(
        np.ldexp(found.astype(float), -36), lost / len(asked) / scale, atol=1e-7
    )


@pytest.mark.parametrize("regression", [False, True])
def test_it_keeps_to_the_contract_of_a_learner(regression):
    check_learner(learner(regression=regression)[0], N_ROWS, tiled=True)


def test_what_only_fits_noise_gains_nothing_on_the_mean():
    """Impurity of noise is above zero in every tree; its sensitivity is as often below it."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 20, (40, 100)).astype(np.uint8)
    labels = np.arange(100, dtype=np.int32) % 2
    features = np.arange(40, dtype=np.uint32)
    rows = TrainingRows.of(Response.classes(labels, 2), "gini")
    trees = TreeLearner(rows, TreeLimits(40), 40)
    block, columns = block_of(codes, tiled=True), Columns(features, features)
    sums = np.zeros((2, 40))
    for number in range(300):
        one = replace(iteration(features), number=number, tree_key=number)
        sums[0] += trees.fit(block, columns, one).importance
        sums[1] += SensitiveLearner(trees).fit(block, columns, one).importance
    assert (sums[0] > 0).all()
    assert 5 < (sums[1] > 0).sum() < 35
    assert abs(sums[1].mean()) < 0.05 * sums[0].mean()

"""Blocks: autoregressive inside, independent outside, the class a sum of one cause of each."""

import numpy as np
import pytest

from srs_ooc.base.errors import UsageError
from srs_ooc.synthetic.problem_tables import columns, describe, rows
from srs_ooc.synthetic.problems import Blocks


def correlations(problem: Blocks) -> np.ndarray:
    return np.corrcoef(rows(problem, 0, problem.n_rows).T)


def test_the_correlation_decays_inside_a_block_and_ends_with_it() -> None:
    found = correlations(Blocks(20_000, 30, 1, 0, block_size=10, correlation=0.9))
    apart = np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    same = np.equal.outer(np.arange(30) // 10, np.arange(30) // 10)
    np.testing.assert_allclose(found, np.where(same, 0.9**apart, 0.0), atol=0.04)


def test_each_member_is_standard_normal() -> None:
    table = rows(Blocks(20_000, 20, 1, 1), 0, 20_000)
    assert np.abs(table.mean(axis=0)).max() < 0.03
    assert np.abs(table.std(axis=0) - 1).max() < 0.03


def test_the_truth_lists_causes_and_their_blocks() -> None:
    problem = Blocks(10, 95, 5, 2, block_size=20)
    truth = problem.truth()
    assert [member for block in truth.blocks for member in block] == list(truth.relevant)
    assert truth.blocks[-1] == tuple(range(80, 95))
    for cause, block in zip(truth.roles["cause"], truth.blocks, strict=True):
        assert cause in block
    assert len(truth.roles["proxy"]) == 95 - 5
    assert describe(problem)["blocks"][0] == [f"f{i}" for i in range(20)]


def test_the_class_is_told_by_blocks_with_a_cause_and_by_no_other() -> None:
    problem = Blocks(4000, 400, 4, 3)
    labels = problem.target(0, 4000).astype(float)
    found = np.abs(np.corrcoef(np.vstack([labels, rows(problem, 0, 4000).T]))[0, 1:])
    relevant = np.isin(np.arange(400), problem.truth().relevant)
    assert found[list(problem.truth().roles["cause"])].min() > 0.25
    assert found[~relevant].max() < 0.08


def test_causes_lie_anywhere_in_a_block() -> None:
    places = np.concatenate([Blocks(2, 2000, 20, seed).positions for seed in range(20)]) % 20
    counts = np.bincount(places, minlength=20)
    assert np.abs(counts - 20).max() < 16


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_relevant": 0}, "--relevant: expected 1 to 3, the number of blocks, found 0"),
        ({"n_relevant": 4}, "found 4"),
        ({"block_size": 0}, "--block-size: expected 1 to 1000, found 0"),
        ({"correlation": 1.0}, "--correlation: expected a number inside -1..1, found 1"),
        ({"correlation": float("nan")}, "--correlation"),
    ],
)
def test_impossible_blocks_are_refused(change: dict[str, float], message: str) -> None:
    good = {"n_rows": 10, "n_features": 50, "n_relevant": 2, "seed": 0}
    with pytest.raises(UsageError, match=message):
        Blocks(**good | change)


FIXED = {
    "roles": {"cause": (0, 4), "proxy": (1, 2, 3, 5)},
    "labels": [1, 0, 1, 0, 1, 1],
    "cells": [[1.1861, 1.4415, 0.6482], [1.4475, -0.5129, -1.5123]],
}


def test_fixed_vectors() -> None:
    problem = Blocks(6, 9, 2, 0, block_size=3)
    assert problem.truth().roles == FIXED["roles"]
    assert problem.target(0, 6).tolist() == FIXED["labels"]
    assert columns(problem, np.array([5, 0], dtype=np.uint32))[:, :3].tolist() == FIXED["cells"]

"""The closing stage: rounds that are halved, taken up where they were committed."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from srs_ooc.base.records import Outcome
from srs_ooc.base.seeds import key_of
from srs_ooc.samplers.elimination import (
    BATCHES,
    MIXED,
    TREES,
    Elimination,
    joint_scores,
    round_sizes,
)

EVEN = ((0.3, 0.3),)


@dataclass
class Saved:
    arrays: dict[str, Any]
    facts: None = None


def n_done(stage):
    return stage.round * TREES + stage.tree


def propose(stage):
    return stage.propose(n_done(stage), key_of(7, stage.round, stage.tree))


def grown(stage, scores):
    """Add a tree that finds each feature as important as its score, with some noise."""
    features = propose(stage).features
    noise = np.random.default_rng([stage.round, stage.tree]).integers(0, 50, len(features))
    stage.absorb(n_done(stage), Outcome(features, scores[features] + noise))


def test_the_closing_stage_ranks_by_score_and_goes_on_where_it_stopped():
    scores = (np.arange(200)[::-1] * 100).astype(np.int64)
    features = np.random.default_rng(0).permutation(200).astype(np.uint32)
    stage = Elimination(features, 7, EVEN, 1000)
    other = Elimination(features, 7, EVEN, 1000)
    assert round_sizes(200) == [200, 100, 50]
    while not stage.done(n_done(stage)):
        grown(stage, scores)
        grown(other, scores)
        if other.tree % 311 == 0:
            before, other = other, Elimination(features, 7, EVEN, 1000)
            other.restore(Saved(before.state().arrays))
    assert n_done(stage) == stage.n_trees == 3 * TREES
    np.testing.assert_array_equal(stage.features, np.arange(200))
    assert stage.rounds.tolist() == [2] * 50 + [1] * 50 + [0] * 100
    assert (np.diff(stage.scores[:50]) < 0).all()
    assert stage.batch_ranks.shape == (BATCHES, 200)
    np.testing.assert_array_equal(np.median(stage.batch_ranks[:, :50], axis=0), np.arange(50))
    for name, array in stage.state().arrays.items():
        np.testing.assert_array_equal(array, other.state().arrays[name], err_msg=name)


def test_rounds_of_few_trees_end_after_as_many():
    stage = Elimination(np.arange(100, dtype=np.uint32), 1, MIXED, 100, n_each=7)
    assert stage.n_trees == 2 * 7
    for number in range(stage.n_trees):
        assert (stage.round, stage.tree) == divmod(number, 7)
        grown(stage, np.arange(100) * 100)
    assert stage.is_over
    assert stage.features[0] == 99


def test_a_tree_sees_no_more_than_the_capacity():
    stage = Elimination(np.arange(100, dtype=np.uint32), 1, EVEN, 12)
    assert len(propose(stage).features) == stage.capacity == 12
    assert len(propose(Elimination(np.arange(1, dtype=np.uint32), 1, EVEN, 12)).features) == 1


def test_the_version_changes_with_those_still_in():
    stage = Elimination(np.arange(60, dtype=np.uint32), 1, EVEN, 60)
    scores = np.arange(60) * 1000
    versions = []
    while not stage.done(n_done(stage)):
        versions.append((stage.version(n_done(stage)), stage.n_kept))
        grown(stage, scores)
    assert sorted(set(versions)) == [(0, 60), (1, 30)]


def test_kinds_of_trees_take_turns_and_each_sees_its_own_share():
    stage = Elimination(np.arange(100, dtype=np.uint32), 1, MIXED, 100)
    scores, seen = np.arange(100) * 1000, []
    while not stage.is_over:
        seen.append((stage.round, stage.tree % 2, len(propose(stage).features)))
        grown(stage, scores)
    assert sorted(set(seen)) == [(0, 0, 20), (0, 1, 30), (1, 0, 10), (1, 1, 35)]


def test_an_item_counts_by_the_kind_of_tree_that_thinks_most_of_it():
    n_drawn = np.full((2, 3), 10)
    importance = np.array([[40, 10, 10], [1000, 3000, 2000]])
    scores = joint_scores(importance, n_drawn)
    # Means are 2 and 200; the best multiples of them 2, 1.5 and 1.
    np.testing.assert_allclose(scores, np.array([2.0, 1.5, 1.0]) * 101)
    np.testing.assert_array_equal(joint_scores(importance[:1], n_drawn[:1]), [4.0, 1.0, 1.0])
    assert joint_scores(np.array([[0, 0], [2, 4]]), np.ones((2, 2), np.int64)).tolist() == [1, 2]


def test_stages_taken_up_amid_kinds_of_trees_end_alike():
    features, scores = np.arange(80, dtype=np.uint32), np.arange(80) * 1000
    stage, other = (Elimination(features, 3, MIXED, 80) for _ in range(2))
    while not stage.is_over:
        grown(stage, scores)
        grown(other, scores)
        if other.tree % 333 == 0:
            before, other = other, Elimination(features, 3, MIXED, 80)
            other.restore(Saved(before.state().arrays))
    for name, array in stage.state().arrays.items():
        np.testing.assert_array_equal(array, other.state().arrays[name], err_msg=name)

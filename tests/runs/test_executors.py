"""Guessing ahead and reading ahead: what is grown, announced and thrown away, in which order."""

import numpy as np
import pytest

from srs_ooc.base.records import Iteration, Outcome, Subspace
from srs_ooc.base.seeds import derive
from srs_ooc.learners.tree_learner import tree_key
from srs_ooc.runs.engine import Speculation, ThreadExecutor


class Ahead:
    """Stands for a reader: notes what it is asked for."""

    def __init__(self, depth):
        self.depth, self.asked = depth, []

    def ask(self, features):
        self.asked.append(int(features[0]))


class Loop:
    """Iterations whose subspace is (iteration, state); the state is what they depend on."""

    def __init__(self, n_workers, depth):
        self.state, self.grown, self.ahead = 0, [], Ahead(depth)
        executor = ThreadExecutor(self.grow, [object()] * n_workers, self.ahead)
        self.speculation = Speculation(executor, self.propose, lambda _: self.state)
        self.executor = executor

    def propose(self, iteration):
        features = np.array([iteration, self.state], dtype=np.uint32)
        return Iteration(iteration, Subspace(features), 0)

    def grow(self, _, iteration):
        self.grown.append(tuple(iteration.features.tolist()))
        return Outcome(iteration.features, np.zeros(2, dtype=np.int64))

    def run(self, start, end, changes=()):
        outcomes = []
        for iteration in range(start, end):
            outcome = self.speculation.outcome(iteration, end)
            outcomes.append(tuple(outcome.features.tolist()))
            self.state += iteration in changes
        return outcomes


@pytest.mark.parametrize("n_workers", [1, 2, 3])
@pytest.mark.parametrize("depth", [0, 2])
def test_outcomes_are_those_of_the_state_of_their_turn(n_workers, depth):
    loop = Loop(n_workers, depth)
    outcomes = loop.run(0, 12, changes={3, 4, 9})
    loop.executor.close()
    states = [0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3]
    assert outcomes == list(enumerate(states))


def test_columns_are_asked_for_ahead_of_growing_once_for_each_iteration():
    loop = Loop(1, 2)
    loop.speculation.outcome(0, 10)
    assert loop.grown == [(0, 0)]
    assert loop.ahead.asked == [0, 1, 2]
    loop.state = 1  # proposed anew; C is the same, so nothing is asked for twice
    assert loop.run(1, 10) == [(iteration, 1) for iteration in range(1, 10)]
    assert loop.ahead.asked == list(range(10))


def test_one_worker_grows_nothing_in_vain():
    loop = Loop(1, 2)
    loop.run(0, 6, changes=range(6))
    assert loop.grown == [(iteration, iteration) for iteration in range(6)]


def test_without_depth_iterations_are_announced_as_they_are_grown():
    loop = Loop(2, 0)
    loop.run(0, 8)
    loop.executor.close()
    assert sorted(loop.ahead.asked) == list(range(8))
    assert sorted(loop.grown) == [(iteration, 0) for iteration in range(8)]


def test_the_first_tree_on_a_subspace_keeps_its_key_and_others_meet_no_feature():
    keys = [tree_key(5, number) for number in range(4)]
    assert keys[0] == 5
    assert len(set(keys)) == 4
    assert not {derive(5, word) for word in range(1000)} & set(keys)

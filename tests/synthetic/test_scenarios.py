"""Chain, clique and marginal tables: the distributions of the theory, and nothing beside them."""

from collections import Counter

import numpy as np
import pytest
import theory_examples as examples
from theory_trees import degree, strongly_relevant_features
from tree_reference import grow_tree

from srs_ooc.base.errors import UsageError
from srs_ooc.synthetic.problem_tables import rows
from srs_ooc.synthetic.problems import Chain, Clique, Marginal
from srs_ooc.trees.response import TreeLimits

KINDS = {"chain": Chain, "clique": Clique, "marginal": Marginal}


def table(kind, r, repetitions, *, p=12, seed=5):
    n_rows = repetitions * kind.n_cells(r)
    problem = kind(n_rows, p, r, seed, True)
    return problem, rows(problem, 0, n_rows), problem.target(0, n_rows)


@pytest.mark.parametrize("r", [1, 2, 3, 4])
@pytest.mark.parametrize("name", KINDS)
def test_every_cell_is_in_proportion(name, r):
    problem, values, labels = table(KINDS[name], r, 3)
    relevant = values[:, problem.positions].astype(int)
    found = Counter((tuple(x), int(y)) for x, y in zip(relevant.tolist(), labels, strict=True))
    expected = getattr(examples, name)(r)
    shares = {(x, y): w * len(labels) / expected.total for x, y, w in expected.cells}
    assert dict(found) == shares


def test_the_degrees_are_as_said():
    assert [degree(examples.chain(4), i) for i in range(4)] == [0, 1, 2, 3]
    assert [degree(examples.clique(4), i) for i in range(4)] == [3, 3, 3, 3]
    assert [degree(examples.marginal(4), i) for i in range(4)] == [0, 0, 0, 0]
    assert strongly_relevant_features(examples.marginal(4)) == {0, 1, 2, 3}


@pytest.mark.parametrize("name", KINDS)
def test_irrelevant_features_together_are_independent_of_the_rest(name):
    """The rows are the product of cells and repetitions."""
    problem, values, labels = table(KINDS[name], 3, 4)
    irrelevant = np.delete(values, problem.positions, axis=1)
    assert all(len(np.unique(column)) > 1 for column in irrelevant.T)
    rest = [(*x, y) for x, y in zip(values[:, problem.positions].tolist(), labels, strict=True)]
    pairs = Counter(zip(rest, map(tuple, irrelevant.tolist()), strict=True))
    n_each = Counter(rest)
    assert len(pairs) == len(n_each) * 4
    assert all(4 * count == n_each[cell] for (cell, _), count in pairs.items())


@pytest.mark.few(1)
@pytest.mark.parametrize("name", KINDS)
def test_no_tree_gives_an_irrelevant_feature_any_importance(name):
    problem, values, labels = table(KINDS[name], 3, 8)
    codes = np.array([np.unique(column, return_inverse=True)[1] for column in values.T])
    features = np.arange(12, dtype=np.uint32)
    irrelevant = np.delete(features, problem.positions)
    total = np.zeros(12, dtype=np.int64)
    for key in range(12):
        total += grow_tree(codes, labels, 2, features, key, TreeLimits(3 + key)).importance
    assert total[irrelevant].tolist() == [0] * 9
    assert (total[problem.positions] > 0).all()


def test_one_repetition_leaves_irrelevant_features_constant():
    problem, values, _ = table(Clique, 3, 1)
    irrelevant = np.delete(values, problem.positions, axis=1)
    assert (irrelevant == irrelevant[0]).all()


def test_sampled_rows_have_the_law_too():
    problem = Marginal(20_000, 6, 2, 1, False)
    values, labels = rows(problem, 0, 20_000), problem.target(0, 20_000)
    shares = [np.mean(labels == values[:, place]) for place in problem.positions]
    assert shares == pytest.approx([0.75, 0.75], abs=0.02)
    irrelevant = np.delete(values, problem.positions, axis=1)
    assert np.abs(np.corrcoef(irrelevant.T, labels)[-1, :-1]).max() < 0.03


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((Chain, 25, 9, 3), "multiple of 24"),
        ((Clique, 20, 9, 3), "multiple of 8"),
        ((Clique, 8, 2, 3), "expected 1 to 2"),
        ((Marginal, 8, 90, 17), "expected 1 to 16"),
        ((Marginal, 8, 90, 0), "expected 1 to 16"),
    ],
)
def test_impossible_scenarios_are_refused(arguments, message):
    kind, *sizes = arguments
    with pytest.raises(UsageError, match=message):
        kind(*sizes)

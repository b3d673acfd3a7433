"""Real trees: what the exact law of one tree says of the time to find everything."""

from fractions import Fraction

import numpy as np
import pytest
from theory_examples import TreeLaws, chain, clique, marginal, real_tree_time
from theory_trees import subsets, tree_outcomes
from tree_reference import grow_tree

from srs_ooc.planning.paper_theory import Setting, expected_time
from srs_ooc.synthetic.problem_tables import rows
from srs_ooc.synthetic.problems import Clique
from srs_ooc.trees.response import TreeLimits


@pytest.mark.parametrize("distribution", [chain(3), clique(3), marginal(3)])
def test_the_law_lives_on_the_possible_outcomes(distribution):
    laws = TreeLaws(distribution)
    for subspace in subsets(distribution.features):
        law = laws.law(subspace, 5)
        assert sum(law.values()) == 1
        assert set(law) == tree_outcomes(distribution, subspace, 99)


@pytest.mark.parametrize("alpha", ["0", "0.5", "1"])
@pytest.mark.parametrize(
    ("scenario", "distribution"),
    [("chain", chain(3)), ("clique", clique(2)), ("marginal", marginal(3))],
)
def test_simplified_trees_are_right_where_a_tree_finds_all_it_can(scenario, distribution, alpha):
    r = distribution.n_features
    theory = expected_time(Setting(scenario, 30, 8, r, alpha)).value
    real = real_tree_time(distribution, 30, 8, alpha)
    assert float(real) == pytest.approx(theory, rel=1e-9)


def test_a_clique_of_three_needs_3_4_draws_of_the_whole_by_rs():
    whole_drawn = Fraction(30 * 29 * 28, 8 * 7 * 6)
    assert real_tree_time(clique(3), 30, 8, 0) == Fraction(17, 5) * whole_drawn
    simplified = expected_time(Setting("clique", 30, 8, 3, 0)).value
    assert simplified == pytest.approx(float(Fraction(11, 2) * whole_drawn))


def test_what_cannot_be_found_has_no_time():
    assert real_tree_time(clique(3), 30, 2, 0) is None
    assert real_tree_time(chain(3), 30, 2, 1) is None


@pytest.mark.slow
@pytest.mark.parametrize("repetitions", [1, 2])
def test_the_law_is_that_of_the_kernel(repetitions):
    """A clique of three among varying or constant other features: counts over 1,000 trees."""
    problem = Clique(8 * repetitions, 7, 3, 2, True)
    values = rows(problem, 0, problem.n_rows)
    codes = np.array([np.unique(column, return_inverse=True)[1] for column in values.T])
    labels, features = problem.target(0, problem.n_rows), np.arange(7, dtype=np.uint32)
    place = {int(position): i for i, position in enumerate(problem.positions)}
    law = TreeLaws(clique(3), repetitions).law(frozenset(range(3)), 4)
    counts = dict.fromkeys(law, 0)
    for key in range(1000):
        grown = grow_tree(codes, labels, 2, features, key, TreeLimits(99)).importance
        counts[frozenset(place[x] for x in np.flatnonzero(grown).tolist())] += 1
    for found, chance in law.items():
        spread = (1000 * chance * (1 - chance)) ** 0.5
        assert abs(counts[found] - 1000 * chance) < 4.5 * spread

"""What the best rule expects that knows the truth: by hand, against rules, and its limits."""

import numpy as np
import pytest
from level_bound import best_below, bound

pytestmark = pytest.mark.research


@pytest.mark.parametrize("n_below", [1, 2, 7])
def test_without_tests_the_best_rule_is_that_of_counting(n_below):
    """V / (1 + D) is a supermartingale: E is that of no place taken off, 1 - 2^-n."""
    (value,) = best_below(0.0, 0, n_below, 1, falls_back=False)
    assert value == pytest.approx(1 - 2.0**-n_below)


def test_one_place_below_by_hand():
    # A false one pays (v + 1) / (a + 1), or v / (a + 1) later; a decoy v / (a + 2), or v / (a + 1).
    values = best_below(0.5, 2, 1, 1, falls_back=False)
    np.testing.assert_allclose(values, [(v + 1) / 1.5 / 2 + v / 1.5 / 2 for v in range(3)])
    values = best_below(0.5, 2, 1, 1, falls_back=True)
    np.testing.assert_allclose(values, [max(v + 1, 3 * v) / 3 + v for v in range(3)])


@pytest.mark.parametrize("n_families", [1, 3])
def test_no_rule_does_better(n_families):
    rng = np.random.default_rng(0)
    a, n = 2.0, 40
    paid = []
    for _ in range(4000):
        v1 = rng.poisson(a)
        is_false = rng.random(n) < 1 / (n_families + 1)
        v2, d = np.cumsum(is_false), np.cumsum(~is_false)
        ratios = (v1 + v2) / (a + (1 + d) / n_families)
        above = np.flatnonzero(ratios > 1.2)  # sees the truth, and stops from the back
        paid.append(ratios[above[-1]] if len(above) else v1 / (a + 1 / n_families))
    found = bound(a, n, n_families, falls_back=False)
    assert 0.9 < np.mean(paid) < found < 1.5


def test_falling_back_costs_up_to_twice():
    assert 1.25 < bound(3.0, 40, 1, falls_back=False) < 1.3
    assert 1.95 < bound(3.0, 40, 1, falls_back=True) < 2.0

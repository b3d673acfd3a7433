"""Times and distributions against Algorithm 1 enumerated: every R, every C, every tree result."""

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from markov_times import found_distribution, markov_time

from srs_ooc.planning.paper_theory import (
    SCENARIOS,
    Setting,
    expected_found,
    expected_time,
    round_cost,
    time_quantile,
)

ALPHAS = ("0", "0.34", "0.5", "0.75", "1")
SIZES = [(6, 3, 3), (6, 4, 3), (5, 4, 4), (5, 2, 3), (6, 3, 5), (4, 4, 3), (5, 1, 2), (5, 1, 1)]
CASES = [(s, *sizes, a) for s in SCENARIOS for sizes in SIZES for a in ALPHAS]


def seen_in(scenario, r, subspace):
    """Return {set of features given importance: probability} for one tree (D.1)."""
    relevant = frozenset(x for x in subspace if x < r)
    if scenario == "marginal":
        return {relevant: Fraction(1)}
    if scenario == "chain":
        longest = next(n for n in range(r + 1) if n == r or n not in relevant)
        return {frozenset(range(longest)): Fraction(1)}
    if len(relevant) < r:
        return {frozenset(): Fraction(1)}
    return {frozenset({x}): Fraction(1, r) for x in range(r)}


@cache
def tree_law(setting, found):
    """Return the law of what one tree sees when F is ``found``."""
    held = min(math.floor(setting.alpha * setting.subspace_size), len(found))
    every = range(setting.n_features)
    kept = list(combinations(sorted(found), held))
    law = Counter()
    for retained in kept:
        rest = [x for x in every if x not in retained]
        fresh = list(combinations(rest, setting.subspace_size - held))
        for drawn in fresh:
            seen = seen_in(setting.scenario, setting.n_relevant, retained + drawn)
            for features, chance in seen.items():
                law[features] += chance / (len(kept) * len(fresh))
    return law


def next_law(setting, law, round_size):
    """Return the law of F after a round, from the law of F before it."""
    after = Counter()
    for found, weight in law.items():
        merged = Counter({found: weight})
        for _ in range(round_size):
            stepped = Counter()
            for so_far, chance in merged.items():
                for seen, more in tree_law(setting, found).items():
                    stepped[so_far | seen] += chance * more
            merged = stepped
        after.update(merged)
    return after


def exact_rounds(setting, n_wanted, round_size=1):
    """Return the mean number of rounds until ``n_wanted`` are found, as a fraction."""

    @cache
    def remaining(found):
        if len(found) >= n_wanted:
            return Fraction(0)
        law = next_law(setting, Counter({found: Fraction(1)}), round_size)
        ahead = sum(w * remaining(f) for f, w in law.items() if f != found)
        return (1 + ahead) / (1 - law[found])

    return remaining(frozenset())


@pytest.mark.parametrize("case", CASES)
def test_mean_times_equal_exact_enumeration(case):
    setting = Setting(*case)
    for wanted in range(1, setting.n_relevant + 1):
        found = expected_time(setting, wanted)
        by_chain = markov_time(setting, wanted)
        if wanted > setting.n_findable:
            assert found is None
            assert by_chain is None
            continue
        exact = exact_rounds(setting, wanted)
        assert abs(Fraction(found.value) / exact - 1) < 1e-13
        assert abs(Fraction(by_chain) / exact - 1) < 1e-13


@pytest.mark.parametrize("case", CASES[::3])
def test_distributions_over_time_equal_exact_enumeration(case):
    setting = Setting(*case)
    law = Counter({frozenset(): Fraction(1)})
    for step in range(1, 8):
        law = next_law(setting, law, 1)
        sizes = Counter()
        for found, chance in law.items():
            sizes[len(found)] += chance
        exact = [float(sizes[n]) for n in range(setting.n_relevant + 1)]
        np.testing.assert_allclose(found_distribution(setting, step), exact, rtol=1e-12, atol=1e-15)
        mean = sum(n * chance for n, chance in enumerate(exact))
        assert expected_found(setting, [step])[0] == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("case", [c for c in CASES if c[1:4] in {(6, 3, 3), (5, 2, 3), (5, 4, 4)}])
@pytest.mark.parametrize("round_size", [1, 2, 3])
def test_rounds_equal_exact_enumeration(case, round_size):
    setting = Setting(*case)
    wanted = setting.n_findable
    if wanted == 0:
        assert round_cost(setting, round_size) is None
        return
    cost = round_cost(setting, round_size, wanted)
    exact = exact_rounds(setting, wanted, round_size)
    assert abs(Fraction(cost["n_rounds"]) / exact - 1) < 1e-13
    assert cost["n_iterations"] == round_size * cost["n_rounds"]
    assert cost["speedup"] <= round_size * (1 + 1e-9) or case[0] == "marginal"


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("alpha", ["0", "0.5", "1"])
def test_quantiles_are_the_first_step_at_the_level(scenario, alpha):
    setting = Setting(scenario, 12, 6, 4, alpha)
    for level in (0.05, 0.5, 0.9, 0.999):
        step = time_quantile(setting, level)
        assert found_distribution(setting, step)[-1] >= level - 1e-12
        assert found_distribution(setting, step - 1)[-1] < level


@pytest.mark.few(1)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_means_agree_with_the_algorithm_simulated(scenario):
    rng = np.random.default_rng(5)
    setting = Setting(scenario, 7, 4, 3, "0.5")
    lengths = [simulate(setting, rng) for _ in range(1500)]
    error = np.std(lengths) / math.sqrt(len(lengths))
    assert abs(np.mean(lengths) - expected_time(setting).value) < 4 * error


def simulate(setting, rng):
    """Return the iterations of one run of Algorithm 1 until all relevant features are found."""
    found, n_iterations = set(), 0
    while len(found) < setting.n_relevant:
        n_iterations += 1
        held = min(int(setting.alpha * setting.subspace_size), len(found))
        kept = set(rng.choice(sorted(found), held, replace=False).tolist()) if held else set()
        rest = sorted(set(range(setting.n_features)) - kept)
        drawn = rng.choice(rest, setting.subspace_size - held, replace=False).tolist()
        seen = seen_in(setting.scenario, setting.n_relevant, kept | set(drawn))
        results = sorted(seen, key=sorted)
        found |= results[rng.integers(len(results))]
    return n_iterations

"""Iterations until features have been drawn often enough, against exact sums."""

import math
import re
from fractions import Fraction
from itertools import combinations, permutations
from math import comb
from pathlib import Path

import numpy as np
import pytest
from distinct_reference import items_from
from hypothesis import given
from hypothesis import strategies as st
from theory_examples import mean_across_chance, neighbour_chance, pair_chance

from srs_ooc.base.seeds import derive
from srs_ooc.planning import speed
from srs_ooc.planning.speed import draw_chance, draw_times, log_chance_below, trials_for
from srs_ooc.samplers.draws import Drawing


def exact_below(n, chance, count):
    return sum(comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(min(count, n + 1)))


@given(n=st.integers(0, 60), tenths=st.integers(1, 9), count=st.integers(1, 20))
def test_the_binomial_tail_is_exact(n, tenths, count):
    exact = float(exact_below(n, Fraction(tenths, 10), count))
    assert math.exp(log_chance_below(n, tenths / 10, count)) == pytest.approx(exact, rel=1e-12)


def test_the_tail_keeps_its_digits_where_it_underflows():
    """(1 - c)**n is 1e-4343 here; its logarithm is as exact as any."""
    log = log_chance_below(10_000, 0.632120558828557677, 1)
    assert log == pytest.approx(-10_000, rel=1e-14)


@given(q=st.integers(1, 30), count=st.integers(1, 12))
def test_no_fewer_trials_would_do(q, count):
    chance, risk = q / 31, 0.01
    n = trials_for(chance, count, math.log(risk))
    assert exact_below(n, Fraction(q, 31), count) <= risk * (1 + 1e-9)
    assert n == count or exact_below(n - 1, Fraction(q, 31), count) > risk * (1 - 1e-9)


@pytest.mark.few(1)
@pytest.mark.parametrize("chance", [0.001, 0.05, 0.5])
def test_very_many_draws_take_no_longer_to_plan(monkeypatch, chance):
    log_risk = math.log(0.01 / 10**6)
    exact = trials_for(chance, 5000, log_risk)
    monkeypatch.setattr(speed, "LARGEST_EXACT", 4999)
    assert trials_for(chance, 5000, log_risk) == pytest.approx(exact, rel=2e-3)
    assert trials_for(chance, 2**31, log_risk) == pytest.approx(2**31 / chance, rel=1e-3)


def every_drawn_once(p, q, n_iterations):
    """P(every feature drawn), by inclusion and exclusion."""
    return sum(
        (-1) ** k * comb(p, k) * Fraction(comb(p - k, q), comb(p, q)) ** n_iterations
        for k in range(p + 1)
    )


@pytest.mark.parametrize(("p", "q"), [(6, 2), (12, 3), (20, 4), (30, 1), (40, 20)])
def test_drawing_every_feature_is_bracketed_tightly(p, q):
    """The coupon collector with q coupons at a time, known exactly for one draw of each."""
    level = Fraction(99, 100)
    exact = next(n for n in range(1, 2000) if every_drawn_once(p, q, n) >= level)
    times = draw_times(p, q, 0, 1)
    # Fewer than this are not enough, by the upper bound: (1 - e)**p is the level.
    least = trials_for(q / p, 1, math.log(-math.expm1(math.log(level) / p)))
    assert least <= exact <= times["every"] <= least + 1
    assert times["one"] <= times["every"]


def test_held_places_are_not_for_drawing():
    assert draw_chance(100, 20, 0) == 0.2
    assert draw_chance(100, 20, 10) == 10 / 90
    assert draw_times(100, 20, 20, 5)["every"] is None
    assert draw_times(100, 20, 10, 5)["every"] > draw_times(100, 20, 0, 5)["every"]


def test_every_feature_in_every_subspace_takes_as_many_iterations_as_draws():
    times = draw_times(50, 50, 0, 11)
    assert (times["one"], times["every"]) == (11, 11)


# Pairs drawn by blocks: the formula against every case, the sampler, and its parts.


NONE = np.zeros(0, dtype=np.uint32)
THEORY = Path(__file__).parents[2] / "docs" / "research" / "theory.md"


@pytest.mark.parametrize(("n", "g"), [(6, 2), (7, 3), (8, 3), (9, 4), (5, 1)])
def test_the_formula_is_what_enumeration_gives(n, g):
    for m in range(1, n + 1):
        found = dict.fromkeys(combinations(range(n), 2), Fraction(0))
        for shift in range(g):
            n_blocks = (n - 1 + shift) // g + 1
            orders = list(permutations(range(n_blocks)))
            for start in range(n):
                mine = [order for order in orders if order[0] == (start + shift) // g]
                for order in mine:
                    drawn = sorted(items_from(start, order, n, g, shift, ())[:m])
                    for pair in combinations(drawn, 2):
                        found[pair] += Fraction(1, g * n * len(mine))
        for (i, j), chance in found.items():
            assert pair_chance(n, m, g, i, j) == chance


@pytest.mark.parametrize(("p", "q", "g"), [(203, 40, 8), (60, 30, 16)])
def test_the_sampler_draws_pairs_as_often_as_the_formula_says(p, q, g):
    drawing, n_draws = Drawing(p, q, "0", draw_block=g), 8000
    together = np.zeros((p, p))
    for key in range(n_draws):
        drawn = drawing.draw(NONE, derive(17, key))
        together[np.ix_(drawn, drawn)] += 1
    together /= n_draws
    for i, j in [(0, 1), (10, 11), (10, 10 + g // 2), (10, 10 + g), (0, p - 1), (p - 2, p - 1)]:
        chance = float(pair_chance(p, q, g, i, j))
        assert abs(together[i, j] - chance) < 4.5 * np.sqrt(chance / n_draws)
    np.testing.assert_allclose(np.diag(together), q / p, atol=4.5 * np.sqrt(q / p / n_draws))


def test_blocks_of_one_are_plain_draws():
    assert (
        pair_chance(50, 10, 1, 3, 4) == Fraction(10 * 9, 50 * 49) == mean_across_chance(50, 10, 1)
    )
    assert (neighbour_chance(1, 1), neighbour_chance(64, 1)) == (0, Fraction(63, 64))


def test_the_mean_over_other_blocks_is_that_of_features_far_apart():
    """Up to what the short blocks at the ends of the line change: g/n of it."""
    n, m, g = 960, 240, 16
    far = [pair_chance(n, m, g, 480, 480 + d) for d in range(64, 96)]
    assert float(sum(far) / 32 / mean_across_chance(n, m, g)) == pytest.approx(1, abs=2 * g / n)


@pytest.mark.slow
def test_the_table_of_the_page_is_computed():
    rows = re.findall(
        r"^\| (\d+) +\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", THEORY.read_text(), re.M
    )
    assert [row[0] for row in rows] == ["1", "16", "64", "250"]
    n, m = 50_000, 2500
    single = pair_chance(n, m, 1, 0, 1)
    for g, near, half, across in rows:
        size, middle = int(g), n // 2
        wanted = [pair_chance(n, m, size, middle, middle + d) for d in (1, max(1, size // 2))]
        wanted.append(mean_across_chance(n, m, size))
        for text, chance in zip((near, half, across), wanted, strict=True):
            assert float(text) == pytest.approx(float(chance / single), rel=0.006)

"""Pairs drawn by blocks: the formula against every case, against the sampler, and its parts."""

import re
from fractions import Fraction
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from distinct_reference import items_from
from theory_examples import mean_across_chance, neighbour_chance, pair_chance

from srs_ooc.base.seeds import derive
from srs_ooc.samplers.draws import Drawing

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

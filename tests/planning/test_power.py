"""Power: the exact law of the statistic, and the shift against a simulation."""

from collections import Counter
from itertools import combinations
from math import comb

import numpy as np
import pytest

from srs_ooc.planning import run_plan
from srs_ooc.planning.run_plan import Contest, mann_whitney_law, power_of


@pytest.mark.parametrize(("n0", "n1"), [(1, 1), (2, 3), (4, 4), (5, 3)])
def test_the_law_of_u_is_that_of_all_arrangements(n0, n1):
    counts = Counter(
        sum(place - i for i, place in enumerate(places))
        for places in combinations(range(n0 + n1), n1)
    )
    law = mann_whitney_law(n0, n1)
    expected = [counts[u] / comb(n0 + n1, n1) for u in range(n0 * n1 + 1)]
    assert law == pytest.approx(expected, rel=1e-12)


def found_share(n0, n1, p, shift, *, n_tables=4000):
    """The share of made-up tables in which the shifted feature's ranks score highest."""
    rng = np.random.default_rng(1)
    n_found = 0
    for _ in range(n_tables // 500):
        values = rng.standard_normal((500, p, n0 + n1))
        values[:, 0, n0:] += shift
        ranks = values.argsort(axis=2).argsort(axis=2)
        score = np.abs(ranks[:, :, n0:].sum(axis=2) - n1 * (n0 + n1 - 1) / 2)
        n_found += int(np.sum(score[:, 0] > score[:, 1:].max(axis=1)))
    return n_found / n_tables


@pytest.mark.few(2)
@pytest.mark.parametrize(("n0", "n1", "p"), [(15, 15, 40), (8, 20, 25)])
@pytest.mark.parametrize(("level", "name"), [(0.5, "half"), (0.95, "most")])
def test_the_shift_is_found_as_often_as_said(n0, n1, p, level, name):
    seen = power_of((n0, n1), p)
    share = found_share(n0, n1, p, seen[name])
    assert share == pytest.approx(level, abs=0.03)


def test_the_normal_tail_goes_on_where_the_exact_one_ends(monkeypatch):
    exact = Contest(100, 100, 10_000).shift_found(0.5)
    monkeypatch.setattr(run_plan, "EXACT_PAIRS", 0)
    assert Contest(100, 100, 10_000).shift_found(0.5) == pytest.approx(exact, rel=0.02)


def test_more_rows_and_fewer_features_show_smaller_shifts():
    shifts = [power_of(counts, p)["half"] for counts, p in [
        ((36, 36), 850_000), ((36, 36), 1000), ((72, 72), 850_000), ((5000, 5000), 850_000)
    ]]  # fmt: skip
    assert shifts[0] > shifts[1] > shifts[3]
    assert shifts[0] > shifts[2] > shifts[3] > 0
    assert shifts[0] == pytest.approx(1.32, abs=0.005)


def test_too_few_rows_show_nothing_and_say_why():
    seen = power_of((10, 10), 10**6)
    assert seen["half"] is seen["most"] is None
    assert "10 rows against 10" in seen["reason"]
    assert "10.8 of 1,000,000" in seen["reason"]  # 10**6 * 2/C(20, 10)
    assert Contest(10, 10, 10**6).found_chance(60.0) == pytest.approx(
        (1 - 2 / comb(20, 10)) ** (10**6 - 1)
    )


def test_the_class_most_easily_distinguished_from_the_others_is_taken():
    assert power_of((10, 60, 30), 100)["groups"] == (60, 40)
    assert power_of((10, 60, 30), 100)["half"] == power_of((40, 60), 100)["half"]


def test_a_single_feature_has_no_rivals():
    assert power_of((5, 5), 1)["half"] <= 1e-4

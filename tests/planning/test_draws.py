"""Iterations until features have been drawn often enough, against exact sums."""

import math
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srs_ooc.planning import iterations
from srs_ooc.planning.iterations import draw_chance, draw_times, log_chance_below, trials_for


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


@pytest.mark.parametrize("chance", [0.001, 0.05, 0.5])
def test_very_many_draws_take_no_longer_to_plan(monkeypatch, chance):
    log_risk = math.log(0.01 / 10**6)
    exact = trials_for(chance, 5000, log_risk)
    monkeypatch.setattr(iterations, "LARGEST_EXACT", 4999)
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
    assert times["every_least"] <= exact <= times["every"] <= times["every_least"] + 1
    assert times["one"] <= times["every"]


def test_held_places_are_not_for_drawing():
    assert draw_chance(100, 20, 0) == 0.2
    assert draw_chance(100, 20, 10) == 10 / 90
    assert draw_times(100, 20, 20, 5)["every"] is None
    assert draw_times(100, 20, 10, 5)["every"] > draw_times(100, 20, 0, 5)["every"]


def test_every_feature_in_every_subspace_takes_as_many_iterations_as_draws():
    times = draw_times(50, 50, 0, 11)
    assert (times["one"], times["every_least"], times["every"]) == (11, 11, 11)

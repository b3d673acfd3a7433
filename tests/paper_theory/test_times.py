"""Accuracy at a billion features, huge times, and the edges."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from markov_times import found_distribution, markov_time

from srs_ooc.base.errors import UsageError
from srs_ooc.planning.paper_theory import (
    SCENARIOS,
    Powers,
    Setting,
    expected_found,
    expected_time,
    mean_time,
    n_wanted_for,
    one_iteration,
    time_quantile,
)

BILLION = 10**9


def falling(n, k):
    return math.prod(range(n - k + 1, n + 1))


def exact_marginal_time(p, q, r, alpha):
    """Return the mean time by rational back substitution in Eq. (12) and (13)."""
    setting = Setting("marginal", p, q, r, alpha)
    times = [Fraction(0)] * (r + 1)
    for found in range(r - 1, -1, -1):
        held, new = setting.n_held(found), r - found
        pool, drawn = p - held, q - held
        chance = [
            Fraction(
                math.comb(new, d) * falling(drawn, d) * falling(pool - drawn, new - d),
                falling(pool, new),
            )
            if d <= drawn
            else Fraction(0)
            for d in range(new + 1)
        ]
        ahead = sum(chance[d] * times[found + d] for d in range(1, new + 1))
        exact = (1 + ahead) / (1 - chance[0])
        times[found] = Fraction(round(exact * 10**40), 10**40)
    return times[0]


@pytest.mark.parametrize("alpha", ["0", "0.3", "1"])
@pytest.mark.parametrize(
    ("p", "q", "r"), [(BILLION, 100, 20), (BILLION, 10**6, 40), (25000, 100, 50), (200, 150, 60)]
)
def test_marginal_times_equal_exact_rationals(p, q, r, alpha):
    exact = exact_marginal_time(p, q, r, alpha)
    found = expected_time(Setting("marginal", p, q, r, alpha))
    assert abs(Fraction(found.value) / exact - 1) < 1e-12


@pytest.mark.parametrize("scenario", ["chain", "clique"])
@pytest.mark.parametrize("alpha", ["0", "0.03", "1"])
def test_closed_forms_and_chains_agree_at_a_billion_features(scenario, alpha):
    for q, r in [(100, 9), (1000, 30), (10**6, 60), (10**8, 90)]:
        setting = Setting(scenario, BILLION, q, r, alpha)
        closed = expected_time(setting).value
        assert math.isclose(markov_time(setting), closed, rel_tol=1e-12)


def test_theorems_4_to_7_at_a_billion_features_equal_exact_rationals():
    p, q, r = BILLION, 500, 30
    together = [math.prod(Fraction(p - m, q - m) for m in range(n, r)) for n in range(r)]
    expected = {
        ("chain", 0): together[0],
        ("chain", 1): sum(Fraction(p - n, q - n) for n in range(r)) - (r - 1),
        ("clique", 0): together[0] * sum(Fraction(r, r - n) for n in range(r)),
        ("clique", 1): sum(Fraction(r, r - n) * together[n] for n in range(r)),
    }
    for (scenario, alpha), exact in expected.items():
        found = expected_time(Setting(scenario, p, q, r, alpha))
        assert abs(Fraction(found.value) / exact - 1) < 1e-13


def test_beyond_double_range_the_logarithm_remains():
    setting = Setting("clique", BILLION, 100, 90)
    found = expected_time(setting)
    exact = math.prod(Fraction(BILLION - m, 100 - m) for m in range(90)) * sum(
        Fraction(90, 90 - m) for m in range(90)
    )
    assert found.value == math.inf
    log10 = math.log10(exact.numerator) - math.log10(exact.denominator)
    assert found.log10 == pytest.approx(log10, rel=1e-13)
    assert markov_time(setting) == math.inf


@pytest.mark.parametrize("r", [2, 4, 8])
def test_random_subspace_on_a_chain_waits_geometrically_however_long(r):
    setting = Setting("chain", BILLION, 100, r)
    chance = float(math.prod(Fraction(100 - m, BILLION - m) for m in range(r)))
    for level in (0.01, 0.5, 0.99):
        exact = math.log1p(-level) / math.log1p(-chance)
        assert time_quantile(setting, level) == pytest.approx(exact, rel=1e-11)
        n = round(exact)
        assert found_distribution(setting, n)[-1] == pytest.approx(level, rel=1e-11)


def pure_birth(leaving, n_steps):
    """Return the law of a pure-birth chain in high precision (distinct rates)."""
    with localcontext() as context:
        context.prec = 120
        rates = [Decimal(e.numerator) / Decimal(e.denominator) for e in leaving] + [Decimal(0)]
        law, climbed = [], Decimal(1)
        for state in range(len(rates)):
            total = Decimal(0)
            for i in range(state + 1):
                others = [rates[j] - rates[i] for j in range(state + 1) if j != i]
                total += (1 - rates[i]) ** n_steps / math.prod(others, start=Decimal(1))
            law.append(float(climbed * total))
            climbed *= rates[state]
        return law


@pytest.mark.parametrize("n_steps", [10, 10**5, 10**9, 3 * 10**14, 10**16])
def test_distributions_keep_their_digits_over_time_scales_far_apart(n_steps):
    p, q, r = 10**6, 100, 4
    leaving = [
        math.prod(Fraction(q - m, p - m) for m in range(found, r)) * Fraction(r - found, r)
        for found in range(r)
    ]
    found = found_distribution(Setting("clique", p, q, r, 1), n_steps)
    assert found == pytest.approx(pure_birth(leaving, n_steps), rel=1e-9, abs=1e-290)


def test_random_subspace_finds_marginal_features_independently_on_average():
    setting = Setting("marginal", BILLION, 10**5, 300)
    for n in (1, 1000, 10**5):
        exact = -300 * math.expm1(n * math.log1p(-(10**5) / BILLION))
        assert expected_found(setting, [n])[0] == pytest.approx(exact, rel=1e-11)


def test_the_mean_time_is_the_sum_of_survivals():
    setting = Setting("marginal", 60, 12, 9, "0.5")
    survived = sum(1 - found_distribution(setting, n)[-1] for n in range(600))
    assert expected_time(setting).value == pytest.approx(survived, rel=1e-10)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_room_for_found_features_is_random_subspace(scenario):
    small = Setting(scenario, 1000, 20, 5, "0.04")
    assert small.n_held_max == 0
    assert expected_time(small) == expected_time(Setting(scenario, 1000, 20, 5, 0))


def test_accumulating_more_never_slows_a_chain_and_never_hurries_marginal_features():
    alphas = ["0", "0.1", "0.2", "0.3", "0.5", "1"]
    chain, marginal = (
        [expected_time(Setting(s, 1000, 20, 6, a)).value for a in alphas]
        for s in ("chain", "marginal")
    )
    assert chain == sorted(chain, reverse=True)
    assert marginal == sorted(marginal)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_all_features_in_memory_takes_the_fewest_iterations(scenario):
    setting = Setting(scenario, 7, 7, 7, 1)
    one_at_a_time = float(sum(Fraction(7, 7 - n) for n in range(7)))
    fewest = one_at_a_time if scenario == "clique" else 1.0
    assert expected_time(setting).value == pytest.approx(fewest, rel=1e-15)
    assert markov_time(setting) == pytest.approx(fewest, rel=1e-15)


def test_shares_round_up_by_their_decimal_text():
    setting = Setting("marginal", 100, 10, 10)
    assert [n_wanted_for(setting, s) for s in ("0.1", 0.7, "0.71", 1)] == [1, 7, 8, 10]
    for wrong in (0, "1.01", "half"):
        with pytest.raises(UsageError, match="share"):
            n_wanted_for(setting, wrong)


def test_never_is_none():
    setting = Setting("clique", 100, 5, 6, 1)
    assert expected_time(setting) is None
    assert time_quantile(setting, 0.5) is None
    assert expected_found(setting, [10**6]) == [0.0]


def test_what_cannot_be_asked_is_refused():
    setting = Setting("chain", 100, 5, 3)
    with pytest.raises(UsageError, match="quantile"):
        time_quantile(setting, 1.0)
    with pytest.raises(UsageError, match="wanted"):
        expected_time(setting, 4)
    with pytest.raises(UsageError, match="iterations"):
        expected_found(setting, [-1])
    with pytest.raises(UsageError, match="1,000 relevant"):
        expected_found(Setting("chain", 5000, 2000, 1500), [1])
    with pytest.raises(UsageError, match="100,000 relevant"):
        expected_time(Setting("marginal", 10**6, 10**3, 10**5 + 1))


def test_a_chain_that_stops_short_is_never_there():
    climb = one_iteration(Setting("chain", 10, 2, 5))
    assert mean_time(climb, 3) == math.inf
    assert Powers(climb, 6).quantile(0.5, 3) is None

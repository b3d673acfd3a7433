"""Section 4 of the paper: against exact rationals, enumeration, simulation, and what is printed."""

import math
import sys
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise

import numpy as np
import paper_table1
import pytest
from markov_times import found_distribution, markov_time
from paper_table1 import PANELS, PRINTED, consistent, draw, panel_curves, rows, table_lines
from theory_over_time import Powers, expected_found, one_iteration, round_cost, time_quantile

from srs_ooc.base.errors import UsageError
from srs_ooc.methods.theory.paper_theory import (
    SCENARIOS,
    Setting,
    exact_alpha,
    expected_time,
    mean_time,
    ratio_product,
)

pytestmark = pytest.mark.theory


# Times: accuracy at a billion features, huge ones, and the edges.


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
    assert abs(Fraction(float(found)) / exact - 1) < 1e-12


@pytest.mark.parametrize("scenario", ["chain", "clique"])
@pytest.mark.parametrize("alpha", ["0", "0.03", "1"])
def test_closed_forms_and_chains_agree_at_a_billion_features(scenario, alpha):
    for q, r in [(100, 9), (1000, 30), (10**6, 60), (10**8, 90)]:
        setting = Setting(scenario, BILLION, q, r, alpha)
        closed = float(expected_time(setting))
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
        assert abs(Fraction(float(found)) / exact - 1) < 1e-13


def test_beyond_double_range_the_logarithm_remains():
    setting = Setting("clique", BILLION, 100, 90)
    found = expected_time(setting)
    exact = math.prod(Fraction(BILLION - m, 100 - m) for m in range(90)) * sum(
        Fraction(90, 90 - m) for m in range(90)
    )
    assert float(found) == math.inf
    log10 = math.log10(exact.numerator) - math.log10(exact.denominator)
    assert float(found.log10()) == pytest.approx(log10, rel=1e-13)
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
    assert float(expected_time(setting)) == pytest.approx(survived, rel=1e-10)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_room_for_found_features_is_random_subspace(scenario):
    small = Setting(scenario, 1000, 20, 5, "0.04")
    assert small.n_held_max == 0
    assert expected_time(small) == expected_time(Setting(scenario, 1000, 20, 5, 0))


def test_accumulating_more_never_slows_a_chain_and_never_hurries_marginal_features():
    alphas = ["0", "0.1", "0.2", "0.3", "0.5", "1"]
    chain, marginal = (
        [float(expected_time(Setting(s, 1000, 20, 6, a))) for a in alphas]
        for s in ("chain", "marginal")
    )
    assert chain == sorted(chain, reverse=True)
    assert marginal == sorted(marginal)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_all_features_in_memory_takes_the_fewest_iterations(scenario):
    setting = Setting(scenario, 7, 7, 7, 1)
    one_at_a_time = float(sum(Fraction(7, 7 - n) for n in range(7)))
    fewest = one_at_a_time if scenario == "clique" else 1.0
    assert float(expected_time(setting)) == pytest.approx(fewest, rel=1e-15)
    assert markov_time(setting) == pytest.approx(fewest, rel=1e-15)


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


# Settings: what is held, found at all, and refused.


@pytest.mark.parametrize(
    ("alpha", "q", "held"),
    [
        ("0.29", 100, 29),
        (0.29, 100, 29),
        (0.57, 100, 57),
        ("0.1", 9, 0),
        (1, 7, 7),
        ("1e-2", 300, 3),
    ],
)
def test_alpha_is_taken_by_its_decimal_text(alpha, q, held):
    assert Setting("chain", 1000, q, 1, alpha).n_held_max == held


def test_no_more_is_held_than_was_found():
    setting = Setting("chain", 100, 10, 8, "0.5")
    assert [setting.n_held(n) for n in range(9)] == [0, 1, 2, 3, 4, 5, 5, 5, 5]


@pytest.mark.parametrize("alpha", ["x", "nan", "inf", -0.1, 1.5, ""])
def test_alpha_outside_0_to_1_is_refused(alpha):
    with pytest.raises(UsageError, match="alpha"):
        exact_alpha(alpha)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("ring", 10, 5, 2), "scenario"),
        (("chain", 0, 1, 1), "n-features"),
        (("chain", 10, 11, 2), "q: found 11, expected 1 to 10"),
        (("chain", 10, 0, 2), "q"),
        (("chain", 10, 5, 0), "n-relevant"),
        (("chain", 10, 5, 11), "n-relevant"),
    ],
)
def test_sizes_out_of_range_are_refused_by_name(arguments, named):
    with pytest.raises(UsageError, match=named):
        Setting(*arguments)


@pytest.mark.parametrize(
    ("scenario", "alpha", "findable"),
    [
        ("chain", 0, 3),
        ("chain", 1, 3),
        ("clique", 0, 0),
        ("clique", 1, 0),
        ("marginal", 0, 5),
        ("marginal", Fraction(2, 3), 5),
        ("marginal", 1, 3),
    ],
)
def test_with_more_relevant_features_than_places_the_reason_is_given(scenario, alpha, findable):
    setting = Setting(scenario, 9, 3, 5, alpha)
    assert setting.n_findable == findable
    assert (setting.why_not() is None) == (findable == 5)
    if findable < 5:
        assert "q" in setting.why_not()


# Products of ratios.


@pytest.mark.parametrize(
    ("p", "q", "start", "stop"),
    [(10**9, 100, 0, 30), (10**9, 5000, 17, 4000), (10**9, 10**6, 0, 90), (12, 12, 0, 12)],
)
def test_products_equal_exact_rationals_up_to_a_billion_features(p, q, start, stop):
    exact = math.prod(Fraction(p - level, q - level) for level in range(start, stop))
    found = ratio_product(p, q, start, stop)
    assert abs(Fraction(found) / exact - 1) < 1e-30


def test_the_product_is_the_ratio_of_binomials():
    exact = Fraction(math.comb(1000, 40), math.comb(1000 - 7, 40 - 7))
    assert float(ratio_product(1000, 40, 0, 7)) == pytest.approx(float(exact), rel=1e-15)


def test_more_features_than_places_is_refused():
    with pytest.raises(ValueError, match="cannot hold"):
        ratio_product(100, 5, 0, 6)


# Exact enumeration of Algorithm 1 as Section 4 simplifies it.


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
        assert abs(Fraction(float(found)) / exact - 1) < 1e-13
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
    assert abs(np.mean(lengths) - float(expected_time(setting))) < 4 * error


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


# Rounds of several subspaces from one F.


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("alpha", ["0", "0.05", "1"])
def test_rounds_of_one_cost_nothing(scenario, alpha):
    cost = round_cost(Setting(scenario, 5000, 100, 5, alpha), 1)
    assert cost["n_lost"] == pytest.approx(0, abs=1e-9 * cost["n_iterations"])
    assert cost["speedup"] == pytest.approx(1)


def test_larger_rounds_lose_iterations_and_win_time_on_a_chain():
    sizes = (1, 4, 16, 64)
    costs = [round_cost(Setting("chain", 5000, 100, 5, 1), size) for size in sizes]
    assert [c["n_lost"] for c in costs] == sorted(c["n_lost"] for c in costs)
    assert [c["speedup"] for c in costs] == sorted(c["speedup"] for c in costs)
    assert all(c["speedup"] < size for c, size in zip(costs[1:], sizes[1:], strict=True))


def test_late_accumulation_spares_marginal_features_iterations():
    # Nearly all of q is held at the end: a round drawn before they were found explores more.
    cost = round_cost(Setting("marginal", 1000, 20, 20, 1), 64)
    assert cost["n_lost"] < 0


def test_random_subspace_loses_less_than_one_round():
    for scenario in SCENARIOS:
        cost = round_cost(Setting(scenario, 500, 50, 3), 32)
        assert 0 <= cost["n_lost"] < 32


def test_wrong_sizes_are_refused():
    with pytest.raises(UsageError, match="round size"):
        round_cost(Setting("chain", 100, 10, 2), 0)
    with pytest.raises(UsageError, match="1,000 relevant"):
        round_cost(Setting("marginal", 10**5, 10**4, 2000), 2)


def test_never_found_is_none():
    assert round_cost(Setting("clique", 100, 5, 6), 4) is None
    assert round_cost(Setting("clique", 10**9, 100, 90), 4) is None


# Table 1 of the paper, and Figure 1.


def test_two_printed_figures_disagree_and_only_those():
    wrong = [
        (row.part, row.setting.n_relevant, name)
        for row in rows()
        for name, cell in (("rs", row.rs), ("srs", row.srs))
        if not cell.agrees
    ]
    assert wrong == [("b", 3, "rs"), ("c", 100, "rs")]


def test_the_wrong_marginal_figure_is_that_of_the_row_below():
    last, above = rows()[-1], rows()[-2]
    assert above.rs.printed == last.rs.printed
    assert last.rs.agrees
    assert above.rs.computed == pytest.approx(516.66065594, rel=1e-9)


def test_every_row_of_the_paper_is_there():
    assert [part for part, *_ in PRINTED] == ["a"] * 5 + ["b"] * 5 + ["c"] * 5


@pytest.mark.parametrize(
    ("printed", "computed", "agrees"),
    [
        ("> 10^6", 1.03e6, True),
        ("> 10^6", 0.99e6, False),
        ("5*10^6", 5.4e6, True),
        ("5*10^6", 5.6e6, False),
        ("10^6", 1.4e6, True),
        ("10^6", 1.6e6, False),
        ("10^6", 9.6e5, True),
        ("291", 291.94, True),
        ("292", 291.94, True),
        ("290", 291.94, False),
    ],
)
def test_what_a_printed_figure_says(printed, computed, agrees):
    assert consistent(printed, computed) is agrees


def test_the_table_marks_what_disagrees(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["paper_table1.py"])
    paper_table1.main()
    out = capsys.readouterr().out
    assert out.splitlines() == table_lines(rows())
    assert out.count("*10^") == 2
    marked = [line for line in out.splitlines() if "5*10^6*" in line or "1123*" in line]
    assert len(marked) == 2
    assert "2 printed figures" in out


@pytest.mark.parametrize("panel", PANELS)
def test_curves_climb_to_all_relevant_features(panel):
    rs, srs = panel_curves(*panel)
    n_relevant = panel[3]
    for line in (rs, srs):
        assert all(b - a > -1e-9 for a, b in pairwise(line.found))
        assert line.iterations == sorted(set(line.iterations))
        assert line.found[-1] > 0.98 * n_relevant
    assert (rs.label, srs.label) == ("RS", "SRS")
    ahead, behind = (rs, srs) if panel[0] == "marginal" else (srs, rs)
    assert all(a >= b - 1e-9 for a, b in zip(ahead.found, behind.found, strict=True))


@pytest.mark.slow
def test_the_figure_is_drawn_with_three_panels(tmp_path):
    pytest.importorskip("matplotlib")
    draw(tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    assert "<svg" in text
    assert text.count('id="axes_') == 3

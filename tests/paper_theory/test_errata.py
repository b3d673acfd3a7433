"""Every entry of docs/research/errata.md that is a computation, held against exact sums."""

import math
from fractions import Fraction
from itertools import combinations, product

import pytest
from theory_examples import chain, clique, masked_by_each_other
from theory_trees import (
    children,
    conditional_decrease,
    decrease,
    importance_by_sum,
    importance_by_trees,
)

from srs_ooc.planning.paper_theory import Setting, expected_time, gains

P, Q, R = 8, 4, 4


def c(n, k):
    return math.comb(n, k) if 0 <= k <= n else 0


def longest_prefix_law(held):
    """Return the law of the longest prefix when the first ``held`` are given, by enumeration."""
    law = [Fraction(0)] * (R + 1)
    draws = list(combinations(range(held, P), Q - held))
    for drawn in draws:
        subspace = {*range(held), *drawn}
        length = next(n for n in range(R + 1) if n == R or n not in subspace)
        law[length] += Fraction(1, len(draws))
    return law


def printed_chain_moves(found, held):
    """Eq. (8) (held = 0) and (9) (held = found) as printed, OCR denominators put right."""
    return [Fraction(c(P - R, Q - n), c(P - held, Q - held)) for n in range(found + 1, R + 1)]


@pytest.mark.parametrize("held", [0, 1, 2])
def test_eq_8_and_9_print_too_small_a_chance_of_stopping_before_the_last(held):
    law = longest_prefix_law(held)
    printed = printed_chain_moves(held, held)
    assert printed[-2:] == law[-2:]
    assert all(a < b for a, b in zip(printed[:-2], law[held + 1 : -2], strict=True))
    ours = gains(Setting("chain", P, Q, R), held, held)
    assert ours.tolist() == pytest.approx([float(x) for x in law[held:]], rel=1e-14)


def mean_by_moves(moves_from, n_states):
    times = [Fraction(0)] * n_states
    for state in range(n_states - 2, -1, -1):
        moves = moves_from(state)
        ahead = sum(w * times[state + 1 + d] for d, w in enumerate(moves))
        times[state] = (1 + ahead) / sum(moves)
    return times[0]


def test_eq_9_as_printed_contradicts_theorem_5():
    theorem_5 = sum(Fraction(P - n, Q - n) for n in range(R)) - (R - 1)
    corrected = mean_by_moves(lambda found: longest_prefix_law(found)[found + 1 :], R + 1)
    printed = mean_by_moves(lambda found: printed_chain_moves(found, found), R + 1)
    assert corrected == theorem_5 == Fraction(28, 3)
    assert printed == Fraction(368, 33)


def test_eq_9_sums_an_index_it_does_not_use():
    """With q - l2 for q - i in the last case the column does not sum to one."""
    found = 1
    moves = printed_chain_moves(found, found)
    stay = 1 - (R - found) * Fraction(c(P - R, Q - found), c(P - found, Q - found))
    assert stay + sum(moves) != 1


def test_eq_10_as_printed_does_not_sum_to_one():
    for found in range(R):
        share = Fraction(R - found, R)
        stay = 1 - Fraction(c(P - R, Q - R), c(P, Q)) * share
        printed = Fraction(c(P - R, Q), c(P, Q)) * share
        corrected = Fraction(c(P - R, Q - R), c(P, Q)) * share
        assert stay + corrected == 1
        if found == 0:  # here p - r = q: C(4, 4) = C(4, 0), the misprint does not show
            assert printed == corrected
    p, q, r = 9, 4, 4
    stay = 1 - Fraction(c(p - r, q - r), c(p, q))
    assert stay + Fraction(c(p - r, q), c(p, q)) == Fraction(65, 63)


@pytest.mark.parametrize("held", [0, 1, 3])
def test_eq_12_and_13_sum_to_one_with_the_denominator_put_right(held):
    moves = [
        Fraction(c(R - held, n - held) * c(P - R, Q - n), c(P - held, Q - held))
        for n in range(held, R + 1)
    ]
    assert sum(moves) == 1
    as_read = [Fraction(c(P - R, Q - held), c(Q - held, Q - held)), *moves[1:]]
    assert sum(as_read) > 1
    ours = gains(Setting("marginal", P, Q, R), held, held)
    assert ours.tolist() == pytest.approx([float(x) for x in moves], rel=1e-14)


def test_eq_2_needs_the_factor_1_over_p_minus_k():
    for distribution in (chain(3).extended(1), clique(2).extended(2), masked_by_each_other()):
        p = distribution.n_features
        for feature, q in product(range(p), range(1, p + 1)):
            by_trees = importance_by_trees(distribution, feature, q)
            assert by_trees == importance_by_sum(distribution, feature, q)
            others = [x for x in range(p) if x != feature]
            printed = sum(
                conditional_decrease(distribution, feature, b) / c(p, k)
                for k in range(q)
                for b in combinations(others, k)
            )
            assert by_trees <= printed
            if by_trees and q < p:
                assert by_trees < printed


def test_a_clique_gains_up_to_r_times_the_harmonic_number_not_r():
    for r in (2, 3, 5):
        rs, srs = (expected_time(Setting("clique", 10**7, 1000, r, a)).value for a in (0, 1))
        harmonic = sum(1 / n for n in range(1, r + 1))
        assert rs / srs == pytest.approx(r * harmonic, rel=0.01)
        assert rs / srs > r


def tree_law(cells, unused):
    """Return the law of the set given importance by a tree with K = q on a parity."""
    if len({y for _, y, _ in cells}) == 1:
        return {frozenset(): Fraction(1)}
    law = {}
    for feature in unused:
        gained = frozenset({feature}) if decrease(cells, feature) > 0 else frozenset()
        partial = {gained: Fraction(1, len(unused))}
        for part in children(cells, feature):
            below = tree_law(part, unused - {feature})
            merged = {}
            for (a, x), (b, y) in product(partial.items(), below.items()):
                merged[a | b] = merged.get(a | b, 0) + x * y
            partial = merged
        for found, chance in partial.items():
            law[found] = law.get(found, 0) + chance
    return law


def test_unconstrained_trees_change_the_ratio_of_rs_to_srs_on_a_clique():
    """D.1 says the simplified tree does not: of 5.5 draws of a clique of 3, 3.4 remain."""
    law = tree_law(clique(3).cells, frozenset({0, 1, 2}))
    assert law == {
        **{frozenset({x}): Fraction(1, 6) for x in range(3)},
        **{frozenset(pair): Fraction(1, 6) for pair in combinations(range(3), 2)},
    }
    every = frozenset({0, 1, 2})

    def remaining(found):
        if found == every:
            return Fraction(0)
        stay = sum(w for seen, w in law.items() if seen <= found)
        ahead = sum(w * remaining(found | seen) for seen, w in law.items() if not seen <= found)
        return (1 + ahead) / (1 - stay)

    assert remaining(frozenset()) == Fraction(17, 5)
    assert sum(Fraction(3, n) for n in (1, 2, 3)) == Fraction(11, 2)


def entropy_decrease(cells, feature):
    def entropy(part):
        total = sum(w for _, _, w in part)
        classes = [sum(w for _, y, w in part if y == value) / total for value in (0, 1)]
        return -total * sum(share * math.log2(share) for share in classes if share)

    return entropy(cells) - sum(entropy(part) for part in children(cells, feature))


def test_the_counterexample_to_proposition_5_does_not_hang_on_gini():
    distribution = masked_by_each_other()
    assert all(weight > 0 for _, _, weight in distribution.cells)
    assert len(distribution.cells) == 16
    assert distribution.total == 64
    gained = [entropy_decrease(distribution.cells, x) for x in range(3)]
    assert 0.1 < gained[0] < gained[1] - 1
    assert gained[1] == pytest.approx(gained[2])
    for z in (1, 2):
        assert distribution.independent({0}, {z})
    assert not distribution.independent({0}, {1, 2})


def independent_sets(cells, left, right, given_):
    """Return whether two sets of the variables (Y last) are independent given a third."""
    weights = {}
    for variables, weight in cells:
        key = tuple(tuple(variables[i] for i in sorted(part)) for part in (left, right, given_))
        weights[key] = weights.get(key, 0) + weight

    def total(**fixed):
        return sum(
            w
            for (a, b, z), w in weights.items()
            if all({"a": a, "b": b, "z": z}[name] == value for name, value in fixed.items())
        )

    return all(
        total(z=z) * w == total(a=a, z=z) * total(b=b, z=z) for (a, b, z), w in weights.items()
    )


def test_the_counterexample_has_the_composition_property():
    """Strictly positive and PC: even for the distributions of Theorem 3, Proposition 5 fails."""
    cells = [((*x, y), weight) for x, y, weight in masked_by_each_other().cells]
    n_checked = 0
    for places in product(range(5), repeat=4):
        r, s, t, u, _ = ({i for i in range(4) if places[i] == part} for part in range(5))
        if s and t and u and independent_sets(cells, s, t, r) and independent_sets(cells, s, u, r):
            assert independent_sets(cells, s, t | u, r)
            n_checked += 1
    assert n_checked == 0  # no two such independences meet, so the property holds emptily

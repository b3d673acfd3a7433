"""How far the estimates of a verdict, added up, can be beaten by a rule that knows the truth.

Claim: where a cut lies below what stands out by itself, the expected share of false features is at
most 1.3 times the level with one family of decoys, whichever rule stops the search for it; with a
rule that may fall back on what stands out, at most twice, and that cannot be improved on.

A verdict looks for its cut from the back: a threshold t falls from 1 and stops, and V1 of the
irrelevant features have p-values of at most t, where a = p t were expected; then places below come
off from the last one, each a decoy or a false feature, until V2 false ones and D decoys are left.
The payoff is (V1 + V2) / (a + (1 + D) / M), the share of false features by its estimate. P-values
of irrelevant features are uniform and independent; an irrelevant item below is a feature with
probability 1 / (M + 1), independently. What the best rule expects, one that sees which features are
false, is found backwards (dynamic programming) on thresholds a factor 1.1 apart. Falling back pays
V1 / a, when no place below is left.

    python benchmarks/research/level_bound.py [--below 150] [--expected 10]
"""

import argparse

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, poisson

RATIO = 1.1
LEAST_EXPECTED = 1e-3


def best_below(
    expected: float, most: int, n_below: int, n_families: int, *, falls_back: bool
) -> NDArray[np.float64]:
    """Return what the best rule expects once the threshold stopped, by V1; float64 (most + 1,).

    Parameters
    ----------
    expected : float
        a, above 0 if the rule may fall back.
    most : int
        Largest V1.
    n_below : int
        Irrelevant items below.
    n_families : int
        M.
    falls_back : bool
        Whether V1 / a is paid where no place below is left.
    """
    v1 = np.arange(most + 1.0)[:, None]
    value = v1 / expected if falls_back else v1 / (expected + 1 / n_families)
    for left in range(1, n_below + 1):
        v2 = np.arange(left + 1)
        going_on = np.zeros((most + 1, left + 1))
        going_on[:, 1:] += v2[1:] / left * value
        going_on[:, :-1] += (left - v2[:-1]) / left * value
        paid = (v1 + v2) / (expected + (1 + left - v2) / n_families)
        value = np.maximum(paid, going_on)
    chances: NDArray[np.float64] = binom.pmf(np.arange(n_below + 1), n_below, 1 / (n_families + 1))
    return value @ chances


def bound(expected: float, n_below: int, n_families: int, *, falls_back: bool) -> float:
    """Return what the best rule expects that starts where ``expected`` false features are."""
    most = int(expected + 8 * expected**0.5 + 12)
    v1, a = np.arange(most + 1), LEAST_EXPECTED
    # Of v1 p-values below a threshold, so many are below one a factor RATIO smaller.
    stay = binom.pmf(v1[None, :], v1[:, None], 1 / RATIO)
    value = np.zeros(most + 1)
    while True:
        stopped = best_below(a, most, n_below, n_families, falls_back=falls_back)
        value = np.maximum(stopped, stay @ value)
        if a >= expected:
            return float(poisson.pmf(v1, a) @ value)
        a *= RATIO


def main() -> None:
    """Print the bounds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--below", type=int, default=150, help="irrelevant items below")
    parser.add_argument("--expected", type=float, default=10.0, help="false features at the start")
    arguments = parser.parse_args()
    print("| families of decoys | a cut below | with falling back |\n|---|---|---|")
    for n_families in (1, 2, 4):
        below, back = (
            bound(arguments.expected, arguments.below, n_families, falls_back=falls_back)
            for falls_back in (False, True)
        )
        print(f"| {n_families} | {below:.3f} | {back:.3f} |", flush=True)


if __name__ == "__main__":
    main()

"""Power: the smallest shift of one feature that is found among p of noise.

One feature is normal with means d standard deviations apart in two groups of n0 and n1 rows, the
other p - 1 are independent of the groups and of one another. Each is scored by |U - n0 n1/2|, U its
Mann-Whitney statistic: ranks are what trees see here. The feature is found when its score is
strictly the largest:

    P(found) = sum over u of P(U = u | d) (1 - t(u))**(p - 1),

t(u) being the chance that noise scores as much as u. t is exact for n0 n1 up to 20,000 and normal
above. Under a shift U has mean n0 n1 Phi(d/sqrt 2) and the variance known in closed form, and is
taken as normal, rounded, its tails at 0 and n0 n1. No test by single features does much better
(the t-test, on normal data and many rows, gains 2% in d); a tree's importance does worse.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

EXACT_PAIRS = 20_000
LARGEST_SHIFT = 64.0
GRID = 2001
_STANDARD = NormalDist()
_erfc = np.vectorize(math.erfc, otypes=[np.float64])


def normal_cdf(values: FloatArray) -> FloatArray:
    """Return the standard normal distribution function of each value."""
    below: FloatArray = 0.5 * _erfc(-values / math.sqrt(2.0))
    return below


def mann_whitney_law(n0: int, n1: int) -> FloatArray:
    """Return P(U = u) for u = 0 .. n0 n1 where both groups have one law: float64, exact.

    By the group of the largest value: P(n0, n1; u) = n1/(n0 + n1) P(n0, n1 - 1; u - n0)
    + n0/(n0 + n1) P(n0 - 1, n1; u). Only positive numbers are added.
    """
    laws: list[FloatArray] = [np.ones(1)] * (n1 + 1)
    for i in range(1, n0 + 1):
        row: list[FloatArray] = [np.ones(1)]
        for j in range(1, n1 + 1):
            law = np.zeros(i * j + 1)
            law[: (i - 1) * j + 1] += i / (i + j) * laws[j]
            law[i:] += j / (i + j) * row[j - 1]
            row.append(law)
        laws = row
    return laws[n1]


@dataclass(frozen=True)
class Power:
    """What one feature's shift must be to be found.

    Attributes
    ----------
    groups : (int, int)
        Rows of the two groups: one class against all others.
    half, most : float or None
        Shifts, in standard deviations, found in half and in 95% of cases; None where no shift is.
    reason : str or None
        Why not, where one of them is None.
    """

    groups: tuple[int, int]
    half: float | None
    most: float | None
    reason: str | None


class Contest:
    """One shifted feature among p - 1 of noise, with given group sizes."""

    def __init__(self, n0: int, n1: int, n_features: int) -> None:
        self.n0, self.n1, self.n_others = n0, n1, n_features - 1
        self._spread = math.sqrt(n0 * n1 * (n0 + n1 + 1) / 12.0)
        self._tail: FloatArray | None = None
        if n0 * n1 <= EXACT_PAIRS:
            self._tail = _two_sided_tail(mann_whitney_law(n0, n1))

    def found_chance(self, shift: float) -> float:
        """Return the probability that a feature shifted by ``shift`` deviations scores highest."""
        mean, spread = self._shifted(shift)
        if self._tail is not None:
            edges = np.arange(0.5, self.n0 * self.n1)
            if spread > 0.0:
                below = normal_cdf((edges - mean) / spread)
            else:
                below = np.asarray(edges > mean, dtype=np.float64)
            masses, tail = np.diff(below, prepend=0.0, append=1.0), self._tail
        else:
            z = np.linspace(-8.0, 8.0, GRID)
            masses = np.exp(-0.5 * z * z)
            masses /= masses.sum()
            score = np.abs(mean + spread * z - 0.5 * self.n0 * self.n1) / self._spread
            tail = _erfc(score / math.sqrt(2.0))
        with np.errstate(divide="ignore"):
            largest = np.exp(self.n_others * np.log1p(-tail)) if self.n_others else 1.0
        return float(np.sum(masses * largest))

    def shift_found(self, level: float) -> float | None:
        """Return the smallest shift found with probability ``level``; None if none is."""
        if self.found_chance(LARGEST_SHIFT) < level:
            return None
        low, high = 0.0, LARGEST_SHIFT
        while high - low > 1e-4:
            middle = 0.5 * (low + high)
            if self.found_chance(middle) >= level:
                high = middle
            else:
                low = middle
        return high

    def _shifted(self, shift: float) -> tuple[float, float]:
        """Return mean and standard deviation of U under a shift.

        With A = P(Y > X) and B = P(Y > X and Y' > X), the same with the groups exchanged, the
        variance is n0 n1 (A (1 - A) + (n0 + n1 - 2)(B - A**2)).
        """
        above = _STANDARD.cdf(shift / math.sqrt(2.0))
        x = np.linspace(-10.0, 10.0, 1001)
        weights = np.exp(-0.5 * x * x)
        both = float(np.sum(weights * normal_cdf(shift - x) ** 2) / weights.sum())
        pairs = self.n0 * self.n1
        variance = pairs * (
            above * (1.0 - above) + (self.n0 + self.n1 - 2) * max(0.0, both - above * above)
        )
        return pairs * above, math.sqrt(max(0.0, variance))


def _two_sided_tail(law: FloatArray) -> FloatArray:
    """Return P(|U - mean| >= |u - mean|) for every u, summed from the ends inwards."""
    below = np.cumsum(law)
    lower = np.minimum(np.arange(len(law)), np.arange(len(law))[::-1])
    tail: FloatArray = np.minimum(1.0, 2.0 * below[lower])
    return tail


def power_of(class_counts: tuple[int, ...], n_features: int) -> Power:
    """Return the power for the class most easily distinguished from all others.

    Parameters
    ----------
    class_counts : tuple of int
        Rows of each class, two classes at least.
    n_features : int
        p.
    """
    total = sum(class_counts)
    n0 = max(class_counts, key=lambda count: count * (total - count))
    n1 = total - n0
    contest = Contest(min(n0, n1), max(n0, n1), n_features)
    half, most = contest.shift_found(0.5), contest.shift_found(0.95)
    reason = None
    if half is None or most is None:
        n_perfect = 2.0 * n_features / math.comb(total, n0)
        reason = (
            f"with {n0} rows against {n1}, about {n_perfect:,.3g} of {n_features:,} features of "
            "noise separate them perfectly by chance, and nothing can score higher"
        )
    return Power((n0, n1), half, most, reason)

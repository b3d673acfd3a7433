"""How many iterations until features have been drawn often enough.

A feature not yet kept is drawn in each iteration with probability c = (q - m)/(p - m), where m is
the number held in R, independently of other iterations: after T of them it has been drawn
Binomial(T, c) times. The features of one iteration are drawn without replacement, so their counts
are negatively associated (Joag-Dev and Proschan 1983), and with e = P(Binomial(T, c) < n)

    1 - p e  <=  P(every feature drawn at least n times)  <=  (1 - e)**p.

At a level near 1 the two ends are met by the same T, or by neighbours: no simulation is needed.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

from srs_ooc.native.numerics import exp, expm1, log, log1p

LARGEST_EXACT = 5000


@dataclass(frozen=True)
class DrawTimes:
    """Iterations until features have been drawn often enough; None where they never are.

    Attributes
    ----------
    n_draws : int
        Draws wanted of each feature.
    level : float
        Probability wanted.
    one : int or None
        For one feature.
    every : int or None
        For all features at once: enough by the lower bound.
    every_least : int or None
        Fewer are not enough, by the upper bound; ``every`` or close below it. None as well where
        features are drawn by blocks.
    """

    n_draws: int
    level: float
    one: int | None
    every: int | None
    every_least: int | None


def draw_chance(n_features: int, subspace_size: int, n_held: int) -> float:
    """Return the probability that an iteration draws a given feature that is not held."""
    return (subspace_size - n_held) / (n_features - n_held) if n_held < n_features else 1.0


def log_chance_below(n_trials: int, chance: float, count: int) -> float:
    """Return log P(Binomial(n_trials, chance) < count); ``-inf`` where it cannot be.

    Terms are formed by ratios from (1 - chance)**n_trials, in logarithms, relative to the largest.
    """
    if n_trials < count:
        return 0.0
    if chance >= 1.0 or count <= 0:
        return -math.inf
    if chance <= 0.0:
        return 0.0
    odds, term = chance / (1.0 - chance), n_trials * log1p(-chance)
    terms = [term]
    for k in range(1, count):
        term += log((n_trials - k + 1) / k * odds)
        terms.append(term)
    largest = max(terms)
    return min(0.0, largest + log(math.fsum(exp(t - largest) for t in terms)))


def trials_for(chance: float, count: int, log_risk: float) -> int | None:
    """Return the fewest trials with P(Binomial < count) at most exp(log_risk); None if none.

    Exact up to 5,000 wanted; above, by the normal law, which is then off by about 0.1%.
    """
    if chance <= 0.0:
        return None
    if count > LARGEST_EXACT:
        z = -NormalDist().inv_cdf(exp(log_risk))
        spread = z * math.sqrt(chance * (1.0 - chance))
        root = (spread + math.sqrt(spread * spread + 4.0 * chance * count)) / (2.0 * chance)
        return math.ceil(root * root)
    high = max(count, 1)
    while log_chance_below(high, chance, count) > log_risk:
        high *= 2
    low = count
    while low < high:
        middle = (low + high) // 2
        if log_chance_below(middle, chance, count) <= log_risk:
            high = middle
        else:
            low = middle + 1
    return low


def draw_times(
    n_features: int, subspace_size: int, n_held: int, n_draws: int, level: float = 0.99
) -> DrawTimes:
    """Return the iterations until features not held have been drawn ``n_draws`` times.

    Parameters
    ----------
    n_features, subspace_size : int
        p and q.
    n_held : int
        Places of the subspace taken by R; floor(alpha q) is the worst.
    n_draws : int
        Draws wanted of each feature.
    level : float
        Probability wanted.
    """
    chance = draw_chance(n_features, subspace_size, n_held)
    each = -expm1(log(level) / n_features)  # (1 - e)**p = level
    return DrawTimes(
        n_draws,
        level,
        trials_for(chance, n_draws, log(1.0 - level)),
        trials_for(chance, n_draws, log((1.0 - level) / n_features)),
        trials_for(chance, n_draws, log(each)),
    )

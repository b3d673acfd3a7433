"""What the native test by risk sets computes, in plain Python: for small tables.

At each event one of the rows of its stratum that are then at risk has it, each as likely. The sum
of the scores of those that had it, less the means of who was at risk, has a saddlepoint."""

from math import ceil, exp, log, pi, sqrt

import numpy as np
from scipy import optimize, stats

GRID = 64


def steps_of(column, missing_code, strata, contrast):
    """The scores of rows, whole numbers; None where a row has none. ``contrast``: 0, 1, 2."""
    if contrast == 2:
        return [int(code >= missing_code) for code in column]
    known = column < missing_code
    levels = np.unique(column[known])
    sizes = np.bincount(strata)
    is_tiny = np.count_nonzero(sizes) > 1 and sizes.max() <= 10
    within = np.zeros(len(column), int) if is_tiny or len(levels) == 2 else strata
    out = [None] * len(column)
    for i in np.flatnonzero(known).tolist():
        peers = column[known & (within == within[i])].astype(int)
        n, code = len(peers) + 1, int(column[i])
        twice = 2 * int((peers < code).sum()) + int((peers == code).sum()) + 1
        twice = 2 * abs(twice - n) if contrast == 1 else twice
        out[i] = (twice * GRID + n) // (2 * n)
        if len(levels) == 2:
            out[i] = int(code == levels[1])
    return out


def draws_of(steps, times, events, strata):
    """Of each event its step, and (weight, step) of the rows at risk; weights sum to their number.

    Of events at one time the l-th finds so much gone of each of them (Efron)."""
    used = [i for i in range(len(steps)) if steps[i] is not None]
    for i in used:
        if not events[i]:
            continue
        peers = [j for j in used if strata[j] == strata[i] and times[j] >= times[i]]
        tied = [j for j in peers if events[j] and times[j] == times[i]]
        gone = tied.index(i) / len(tied)
        yield steps[i], [(1 - gone * (j in tied), steps[j]) for j in peers]


def log_p(column, missing_code, times, events, strata, contrast):
    """The natural logarithm of the two-sided p-value."""
    draws = list(draws_of(steps_of(column, missing_code, strata, contrast), times, events, strata))

    def moments(t):
        value = slope = curve = 0.0
        for _, risk in draws:
            weights, x = (np.array(part, float) for part in zip(*risk, strict=True))
            tilted, mean = weights * np.exp(t * x), (weights * x).sum() / weights.sum()
            first = (tilted * x).sum() / tilted.sum()
            value += log(tilted.sum() / weights.sum()) - t * mean
            slope += first - mean
            curve += (tilted * x * x).sum() / tilted.sum() - first * first
        return value, slope, curve

    observed = sum(
        step - sum(w * x for w, x in risk) / sum(w for w, _ in risk) for step, risk in draws
    )
    variance = moments(0.0)[2]
    if variance < 1e-9:
        return 0.0
    gate = 1 if variance < 25 else 1.6  # up to which the normal tail is taken
    if abs(observed) < (gate + 1e-9) * sqrt(variance):
        return log(2 * stats.norm.sf(abs(observed) / sqrt(variance)))

    def tail(side, at):
        wanted = side * (at - 0.5)
        if side * wanted <= 0:
            return 0.5
        far = side * 9.0
        if side * (moments(far)[1] - wanted) <= 0:
            return 0.0
        t = optimize.brentq(lambda t: moments(t)[1] - wanted, 0.0, far, xtol=1e-14, rtol=1e-14)
        value, _, curve = moments(t)
        w = sqrt(2 * (t * wanted - value))
        density = exp(-w * w / 2) / sqrt(2 * pi)
        return stats.norm.sf(w) + density * (1 / (2 * np.sinh(abs(t) / 2) * sqrt(curve)) - 1 / w)

    side, size = (1 if observed > 0 else -1), abs(observed)
    both = tail(side, size) + tail(-side, ceil(2 * size - 1e-9) - size)
    return min(0.0, log(both))

"""The joint test of classes and levels in Python: what the native one has to come to."""

import itertools
from math import comb

import numpy as np
from scipy import optimize, stats

FEW_TABLES = 20000


def parts_of(cells):
    """Each class against those after it, there each level: (count, mean, variance, law) of each.

    ``cells`` (n_strata, n_classes, n_levels); a law is the chance of each count from 0 on.
    """
    left, found = cells.sum(axis=1), []
    for of_class in cells[:, :-1].swapaxes(0, 1):
        for level in range(cells.shape[2] - 1):
            count, mean, variance, law = 0, 0.0, 0.0, np.ones(1)
            for own, all_ in zip(of_class, left, strict=True):
                n, m, k = (int(x) for x in (all_[level:].sum(), own[level:].sum(), all_[level]))
                spread = m * (n - m) * k * (n - k) / (n**2 * (n - 1)) if n > 1 else 0
                if not spread:
                    continue
                count, mean, variance = count + own[level], mean + m * k / n, variance + spread
                law = np.convolve(law, stats.hypergeom(n, m, k).pmf(np.arange(min(m, k) + 1)))
            if variance > 0:
                found.append((count, mean, variance, law))
        left = left - of_class
    return found


def statistic(cells):
    """Return the sum of the squares of standardised counts."""
    return sum((count - mean) ** 2 / variance for count, mean, variance, _ in parts_of(cells))


def n_tables(cells):
    """Return a bound of how many tables have these margins, strata taken together."""
    rows, n_levels = cells.sum(axis=(0, 2)), cells.shape[2]
    ways = np.prod([float(comb(int(n) + n_levels - 1, n_levels - 1)) for n in rows[:-1]])
    return min(ways, np.prod([float(np.count_nonzero(law)) for *_, law in parts_of(cells)]))


def tables_of(classes, levels):
    """Yield all tables of one stratum with these margins, and the chance of each."""
    if len(classes) == 1:
        yield np.array([levels]), 1.0
        return
    law = stats.multivariate_hypergeom(levels, classes[0])
    for own in itertools.product(*(range(min(n, classes[0]) + 1) for n in levels)):
        if sum(own) == classes[0]:
            for rest, chance in tables_of(classes[1:], levels - np.array(own)):
                yield np.vstack([[own], rest]), chance * law.pmf(own)


def exact_p(cells):
    """Count all tables of one stratum that are as far."""
    seen = statistic(cells) * (1 - 1e-8)
    margins = cells[0].sum(axis=1), cells[0].sum(axis=0)
    return sum(p for table, p in tables_of(*margins) if statistic(table[None]) >= seen)


def saddlepoint_p(cells):
    """The tail of a sum of independent parts by Lugannani and Rice."""
    parts, x = parts_of(cells), statistic(cells)
    atoms = [((np.arange(len(law)) - m) ** 2 / v, law) for _, m, v, law in parts]

    def cumulants(t):
        tops = [t * s.max() for s, _ in atoms]
        tilted = [law * np.exp(t * s - top) for (s, law), top in zip(atoms, tops, strict=True)]
        means = [p @ s / p.sum() for (s, _), p in zip(atoms, tilted, strict=True)]
        curves = [
            p @ (s - mean) ** 2 / p.sum()
            for (s, _), p, mean in zip(atoms, tilted, means, strict=True)
        ]
        return sum(tops) + sum(np.log(p.sum()) for p in tilted), sum(means), sum(curves)

    if x >= sum(s.max() for s, _ in atoms) * (1 - 1e-9):
        return np.prod([law[s >= s.max() * (1 - 1e-9)].sum() for s, law in atoms])
    if x <= len(parts) * (1 + 1e-9):
        return stats.chi2.sf(x, len(parts))
    atoms = [(np.minimum(s, x), law) for s, law in atoms]  # beyond, a part is as far anyway
    high = 1.0
    while cumulants(high)[1] < x:
        high *= 2
    t = optimize.brentq(lambda t: cumulants(t)[1] - x, 0, high)
    value, _, curve = cumulants(t)
    w, u = np.sqrt(2 * (t * x - value)), t * np.sqrt(curve)
    return stats.norm.sf(w) + stats.norm.pdf(w) * (1 / u - 1 / w)


def joint_p(cells):
    """Return the p-value of the joint test."""
    parts = parts_of(cells)
    if not parts:
        return 1.0
    if n_tables(cells) > FEW_TABLES:
        return saddlepoint_p(cells)
    if len(cells) == 1:
        return exact_p(cells)
    squares = 0.0
    for count, mean, _, law in parts:
        far = np.abs(np.arange(len(law)) - mean) >= abs(count - mean) * (1 - 1e-9) - 1e-9
        squares += stats.norm.isf(min(law[far].sum(), 1.0) / 2) ** 2
    return stats.chi2.sf(squares, len(parts))

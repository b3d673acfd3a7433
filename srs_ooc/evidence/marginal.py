"""One feature at a time: rank tests of each against the target, with Benjamini and Hochberg.

On plain additive signal with few rows this beats any forest; users should see both.
"""

from math import erfc, exp, lgamma, log, sqrt

import numpy as np
from numpy.typing import NDArray

_PIECE = 1 << 16
_LEAST = 1e-300


def target_ranks(target: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return midranks of ``target``, from 1."""
    _, codes, counts = np.unique(target, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    ranks: NDArray[np.float64] = middle[codes]
    return ranks


def histogram(
    codes: NDArray[np.integer], n_codes: int, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the rows, or their weights, of each code of each column; (n_columns, n_codes)."""
    n = len(codes)
    flat = (codes + (np.arange(n) * n_codes)[:, None]).ravel()
    repeated = None if weights is None else np.tile(weights, n)
    counts = np.bincount(flat, repeated, minlength=n * n_codes)
    return counts.reshape(n, n_codes).astype(np.float64)


def midranks(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the midrank of each code of each column; (n_columns, n_codes)."""
    return np.cumsum(counts, axis=1) - (counts - 1) / 2


def class_p_values(
    codes: NDArray[np.integer], labels: NDArray[np.integer], n_classes: int, n_codes: int
) -> NDArray[np.float64]:
    """Return the p-value of each column's Kruskal-Wallis test; two classes: the rank-sum test.

    Parameters
    ----------
    codes : integers (n_columns, n_rows)
        Ordinal codes; ``n_codes`` and above are missing, and left out.
    labels : integers (n_rows,)
        Class codes below ``n_classes``.
    n_classes, n_codes : int
        Numbers of classes and of codes.

    Returns
    -------
    float64 (n_columns,)
        By the chi-squared approximation with ties corrected; 1 where a column is constant.
    """
    clipped = np.minimum(codes, n_codes)
    per_class = np.stack(
        [histogram(clipped[:, labels == k], n_codes + 1)[:, :-1] for k in range(n_classes)]
    )
    total = per_class.sum(axis=0)
    ranks = midranks(total)
    n = total.sum(axis=1)
    sizes = per_class.sum(axis=2)
    sums = np.einsum("kcv,cv->kc", per_class, ranks)
    centred = sums - sizes * (n + 1) / 2
    between = (centred**2 / np.maximum(sizes, 1)).sum(axis=0)
    spread = (total * (ranks - ((n + 1) / 2)[:, None]) ** 2).sum(axis=1)
    statistic = (n - 1) * between / np.maximum(spread, 1e-300)
    present = np.count_nonzero(sizes, axis=0)
    return np.array(
        [
            chi_squared_tail(h, int(k) - 1) if s > 0 and k > 1 else 1.0
            for h, k, s in zip(statistic, present, spread, strict=True)
        ]
    )


def rank_correlation_p_values(
    codes: NDArray[np.integer], ranks: NDArray[np.float64], n_codes: int
) -> NDArray[np.float64]:
    """Return the p-value of each column's rank correlation with the target (normal approximation).

    Parameters
    ----------
    codes : integers (n_columns, n_rows)
        As in :func:`class_p_values`.
    ranks : float64 (n_rows,)
        Of :func:`target_ranks`.
    n_codes : int
        Number of codes.
    """
    clipped = np.minimum(codes, n_codes)
    counts, first, second = (
        histogram(clipped, n_codes + 1, weights)[:, :-1] for weights in (None, ranks, ranks**2)
    )
    n = counts.sum(axis=1)
    x = midranks(counts) - ((n + 1) / 2)[:, None]
    mean = first.sum(axis=1) / np.maximum(n, 1)
    covariance = (x * (first - counts * mean[:, None])).sum(axis=1)
    spread = (counts * x**2).sum(axis=1) * (second.sum(axis=1) - n * mean**2)
    z = covariance / np.sqrt(np.maximum(spread, 1e-300)) * np.sqrt(np.maximum(n - 1, 0))
    return np.array([erfc(abs(value) / sqrt(2)) for value in np.where(spread > 0, z, 0.0)])


def strength(p_values: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return minus the decimal logarithm of p-values, at most 300."""
    logarithms: NDArray[np.float64] = -np.log10(np.maximum(p_values.astype(np.float64), _LEAST))
    return logarithms


def chi_squared_tail(statistic: float, degrees: int) -> float:
    """Return P(X >= statistic) of a chi-squared X with ``degrees`` of freedom.

    The finite sums for whole numbers of degrees (Abramowitz and Stegun, 26.4.4 and 26.4.5).
    """
    if statistic <= 0:
        return 1.0
    half = statistic / 2
    if degrees % 2:
        tail, term = erfc(sqrt(half)), -half + 0.5 * log(half) - lgamma(1.5)
        start = 1.5
    else:
        tail, term = exp(-half), -half + log(half)
        start = 2.0
    for step in range((degrees - 1) // 2):
        tail += exp(term)
        term += log(half) - log(start + step)
    return min(tail, 1.0)


def largest_passing(p_values: NDArray[np.floating], level: float) -> float:
    """Return the p-value up to which features pass at false discovery rate ``level``; 0 if none.

    Benjamini and Hochberg (1995), J. R. Statist. Soc. B 57, Section 3.1. NaN is no feature.
    """
    ascending = np.sort(p_values)
    nan = ascending.dtype.type(np.nan)  # of another type it would have all of them copied
    n, largest = int(np.searchsorted(ascending, nan)), 0.0
    for start in range(0, n, _PIECE):  # a few numbers a feature would break the memory plan
        some = ascending[start : start + _PIECE]
        passing = some[some <= level * np.arange(start + 1, start + 1 + len(some)) / n]
        largest = max(largest, float(passing.max(initial=0.0)))
    return largest

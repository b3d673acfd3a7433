"""Rank tests of one feature at a time within strata: only rows of one stratum are compared.

Given the strata and which rows trade places within them, rank sums of different strata are
independent; they are added, with ranks divided by n + 1 in a stratum of n rows (van Elteren 1960,
Bull. Inst. Internat. Statist. 37; for more than two classes the quadratic form of the class sums,
for targets the sum of products of ranks). With one stratum these are the tests of
:mod:`srs_ooc.evidence.marginal`.
"""

from collections.abc import Sequence
from math import erfc, sqrt

import numpy as np
from numpy.typing import NDArray

from srs_ooc.evidence.marginal import chi_squared_tail, histogram, midranks, target_ranks

_SINGULAR = 1e-9


def rows_by_stratum(strata: NDArray[np.integer]) -> list[NDArray[np.intp]]:
    """Return the rows of each stratum of two rows or more."""
    order = np.argsort(strata, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(strata[order])) + 1)
    return [rows for rows in parts if len(rows) > 1]


def class_p_values(
    codes: NDArray[np.integer],
    labels: NDArray[np.integer],
    n_classes: int,
    n_codes: int,
    strata: Sequence[NDArray[np.intp]],
) -> NDArray[np.float64]:
    """Return the p-value of each column; two classes: van Elteren's test.

    Parameters
    ----------
    codes, labels, n_classes, n_codes
        As of :func:`srs_ooc.evidence.marginal.class_p_values`.
    strata : sequence of intp (n_rows of it,)
        The rows of each stratum.

    Returns
    -------
    float64 (n_columns,)
        By the chi-squared approximation; 1 where nothing varies within strata.
    """
    clipped = np.minimum(codes, n_codes)
    sums = np.zeros((len(codes), n_classes))
    spread = np.zeros((len(codes), n_classes, n_classes))
    for rows in strata:
        inside, own = clipped[:, rows], labels[rows]
        counts = np.stack(
            [histogram(inside[:, own == k], n_codes + 1)[:, :-1] for k in range(n_classes)]
        )
        x, sizes, n = _centred(counts.sum(axis=0)), counts.sum(axis=2).T, counts.sum(axis=(0, 2))
        variance = (counts.sum(axis=0) * x**2).sum(axis=1) / np.maximum(n - 1, 1)
        mixed = sizes[:, :, None] * sizes[:, None, :] / np.maximum(n, 1)[:, None, None]
        sums += np.einsum("kcv,cv->ck", counts, x)
        spread += variance[:, None, None] * (sizes[:, :, None] * np.eye(n_classes) - mixed)
    values, vectors = np.linalg.eigh(spread)
    is_free = values > _SINGULAR * np.maximum(values[:, -1:], _SINGULAR)
    along = np.einsum("ckj,ck->cj", vectors, sums)
    statistics = np.where(is_free, along**2 / np.where(is_free, values, 1.0), 0.0).sum(axis=1)
    degrees = np.count_nonzero(is_free, axis=1)
    return np.array(
        [
            chi_squared_tail(statistic, k) if k else 1.0
            for statistic, k in zip(statistics.tolist(), degrees.tolist(), strict=True)
        ]
    )


def rank_correlation_p_values(
    codes: NDArray[np.integer],
    target: NDArray[np.float64],
    n_codes: int,
    strata: Sequence[NDArray[np.intp]],
) -> NDArray[np.float64]:
    """Return the p-value of each column's rank correlation with ``target`` (n_rows,) in strata.

    The other parameters are those of :func:`class_p_values`; by the normal approximation.
    """
    clipped = np.minimum(codes, n_codes)
    total, spread = np.zeros(len(codes)), np.zeros(len(codes))
    for rows in strata:
        ranks = target_ranks(target[rows]) / (len(rows) + 1)
        counts, first, second = (
            histogram(clipped[:, rows], n_codes + 1, weights)[:, :-1]
            for weights in (None, ranks, ranks**2)
        )
        n, x = counts.sum(axis=1), _centred(counts)
        mean = first.sum(axis=1) / np.maximum(n, 1)
        total += (x * (first - counts * mean[:, None])).sum(axis=1)
        own = (counts * x**2).sum(axis=1) * (second.sum(axis=1) - n * mean**2)
        spread += own / np.maximum(n - 1, 1)
    z = total / np.sqrt(np.where(spread > 0, spread, 1.0))
    return np.array([erfc(abs(value) / sqrt(2)) for value in np.where(spread > 0, z, 0.0)])


def _centred(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the midranks of codes less their mean, divided by the rows and one."""
    n = counts.sum(axis=1, keepdims=True)
    centred: NDArray[np.float64] = (midranks(counts) - (n + 1) / 2) / (n + 1)
    return centred

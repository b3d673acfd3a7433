"""The gradient of Parametric Random Subspace, and the weights that let models be used again.

Symbols are those of Huynh-Thu and Geurts (2023): alpha are the probabilities that T subsets were
drawn with, beta those asked about, ``w_t = p(z_t | beta) / p(z_t | alpha)`` (Eq. 15).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native.numerics import logs, powers

LEAST_CHANCE = 1e-6
"""Denominators of scores and of weights are at least this."""
LARGEST_WEIGHT = 1e50
_LEAST_RATIO = 2.0**-200
_PIECE = 1 << 16


@dataclass(frozen=True)
class Members:
    """The features of some subsets, one subset after another.

    Attributes
    ----------
    features : uint32 (n,)
        Ascending within a subset.
    owners : int64 (n,)
        The subset of each, ascending.
    """

    features: NDArray[np.uint32]
    owners: NDArray[np.int64]


Subsets = Iterable[Members]
"""T subsets in pieces: each subset whole in one piece."""


def log_ratios(
    beta: NDArray[np.float64], alpha: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return what ``log w_t`` is a sum of.

    Returns
    -------
    total : float
        Sum over all features of ``log((1 - beta) / (1 - alpha))``.
    terms : float64 (p,)
        What each feature of a subset adds to it:
        ``log(beta / alpha) - log((1 - beta) / (1 - alpha))``.
    """
    terms, total = np.empty(len(beta)), 0.0
    for start in range(0, len(beta), _PIECE):
        piece = slice(start, start + _PIECE)
        absent = _log_ratio(1.0 - beta[piece], 1.0 - alpha[piece])
        terms[piece] = _log_ratio(beta[piece], alpha[piece]) - absent
        total += float(absent.sum())
    return total, terms


def _log_ratio(above: NDArray[np.float64], below: NDArray[np.float64]) -> NDArray[np.float64]:
    return logs(np.maximum(above / np.maximum(below, LEAST_CHANCE), _LEAST_RATIO))


def importance_weights(
    subsets: Subsets, n_subsets: int, beta: NDArray[np.float64], alpha: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``w_t``, at most 1e50; float64 (n_subsets,)."""
    return weights_by(subsets, n_subsets, log_ratios(beta, alpha))


def weights_by(
    subsets: Subsets, n_subsets: int, ratios: tuple[float, NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Return the same from :func:`log_ratios`; float64 (n_subsets,)."""
    total, terms = ratios
    sums = np.zeros(n_subsets)
    for part in subsets:
        sums += np.bincount(part.owners, terms[part.features], n_subsets)
    return np.minimum(powers(np.minimum(total + sums, 200.0)), LARGEST_WEIGHT)


def effective_number(weights: NDArray[np.float64]) -> float:
    """Return how many equally weighted models the weights are worth (Eq. 16)."""
    squares = float((weights * weights).sum())
    total = float(weights.sum())
    return total * total / squares if squares > 0 else 0.0


def gradient(
    subsets: Subsets,
    beta: NDArray[np.float64],
    weights: NDArray[np.float64],
    slopes: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the gradient of the loss by beta (Eqs. 9, 12 and 15), in O(members + p).

    Eq. 15 needs no array of rows by models by features. With ``a_t`` the sum over rows of the
    loss's derivative times model t's prediction, and h_tj the derivative of ``log p(z_t | beta)``,
    which is one of two numbers for each feature,

        ``T g_j = sum(w h a) - sum(w h) sum(w h^2 a) / sum(w h^2)``,

    whose last factor is the optimal baseline of all rows. Every sum is over the subsets that hold
    j, or the total less that. A feature that no subset holds, or that all hold, has the gradient 0.

    Parameters
    ----------
    subsets : iterable of Members
        The T subsets.
    beta : float64 (p,)
        Where the gradient is wanted.
    weights : float64 (T,)
        ``w_t``.
    slopes : float64 (T,)
        ``a_t``.
    """
    n_features, n_subsets = len(beta), len(weights)
    counts = np.zeros(n_features, np.int64)
    held, held_slopes = np.zeros(n_features), np.zeros(n_features)
    moments = weights * slopes
    for part in subsets:
        counts += np.bincount(part.features, minlength=n_features)
        held += np.bincount(part.features, weights[part.owners], n_features)
        held_slopes += np.bincount(part.features, moments[part.owners], n_features)
    out, total, total_slopes = np.zeros(n_features), weights.sum(), moments.sum()
    places = np.flatnonzero((counts > 0) & (counts < n_subsets))
    for start in range(0, len(places), _PIECE):
        j = places[start : start + _PIECE]
        with_j = 1.0 / np.maximum(beta[j], LEAST_CHANCE)
        without = -1.0 / np.maximum(1.0 - beta[j], LEAST_CHANCE)
        s1, a1 = held[j], held_slopes[j]
        s0, a0 = total - s1, total_slopes - a1
        squares = with_j * with_j * s1 + without * without * s0
        baseline = (with_j * with_j * a1 + without * without * a0) / np.maximum(
            squares, LEAST_CHANCE
        )
        scores = with_j * s1 + without * s0
        out[j] = (with_j * a1 + without * a0 - baseline * scores) / n_subsets
    return out

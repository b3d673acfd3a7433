"""The mathematics of Parametric Random Subspace: gradient, steps, draws and penalties.

Models are weighed so that those drawn under former probabilities count under new ones. Logarithms
and powers are native, with the same bits on every machine.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import srs_ooc.extend as core

# Steps of Parametric Random Subspace: Adam on the projected gradient, and the set beta lies in.

FIRST, SECOND, LEAST = 0.9, 0.999, 1e-8
"""Adam's decay rates and what is added to its denominator (Kingma and Ba 2015)."""
BOUND = 0.5
"""What a step leaves the models worth that it was computed from: this share of what has them grown
again."""
MOST_HALVINGS = 30
"""How often a step is halved for that, at most."""
_HALVINGS = 60


def adam_step(
    gradient: core.Floats, moments: core.Floats, powers: tuple[float, float], rate: float
) -> tuple[core.Floats, tuple[float, float]]:
    """Take a gradient in; return what is to be taken from beta, and the powers after it.

    Parameters
    ----------
    gradient : float64 (p,)
        Lost.
    moments : float64 (2, p)
        Moving averages of the gradient and of its square; changed.
    powers : tuple of float
        Their decay rates to the power of the steps taken, which correct for the start at 0.
    rate : float
        Adam's learning rate.
    """
    first, second = moments
    first *= FIRST
    first += (1.0 - FIRST) * gradient
    second *= SECOND
    gradient *= gradient
    gradient *= 1.0 - SECOND
    second += gradient
    powers = powers[0] * FIRST, powers[1] * SECOND
    out = second / (1.0 - powers[1])
    np.sqrt(out, out=out)
    out += LEAST
    np.divide(first, out, out=out)
    out *= rate / (1.0 - powers[0])
    return out, powers


def projected(beta: core.Floats, gradient: core.Floats) -> core.Floats:
    """Return the gradient without what points out of [0, 1]: there beta cannot go."""
    outward = ((beta <= 0.0) & (gradient > 0.0)) | ((beta >= 1.0) & (gradient < 0.0))
    return np.where(outward, 0.0, gradient)


def feasible(
    beta: core.Floats, candidates: core.Bools | None, largest: float, least: float
) -> core.Floats:
    """Return the nearest probabilities whose sum is at most ``largest``.

    Parameters
    ----------
    beta : float64 (p,)
        Any numbers; changed.
    candidates : bool (p,) or None
        Others stay at 0; None where all may be drawn.
    largest : float
        Bound of the mean size of a subset.
    least : float
        What all are set to where none is above 0: nothing would be drawn any more.
    """
    np.clip(beta, 0.0, 1.0, out=beta)
    if candidates is not None:
        beta[~candidates] = 0.0
    total = float(beta.sum())
    if total == 0.0:
        beta[slice(None) if candidates is None else candidates] = least
    elif total > largest:  # the nearest with that sum are all less one number
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if float(np.maximum(beta - middle, 0.0).sum()) > largest:
                low = middle
            else:
                high = middle
        beta = np.maximum(beta - high, 0.0)
    return beta


# The gradient of Parametric Random Subspace, and the weights that let models be used again.
#
# Symbols are those of Huynh-Thu and Geurts (2023): alpha are the probabilities that T subsets were
# drawn with, beta those asked about, ``w_t = p(z_t | beta) / p(z_t | alpha)`` (Eq. 15).

LEAST_CHANCE = 1e-6
"""Denominators of scores and of weights are at least this."""
LARGEST_WEIGHT = 1e50
_LEAST_RATIO = 2.0**-200
_PIECE = 1 << 16


Subsets = Iterable[tuple[core.Uints32, core.Ints]]
"""T subsets in pieces, each subset whole in one: their features, ascending within a subset, and the
number of the subset that each is in, ascending."""


def log_ratios(beta: core.Floats, alpha: core.Floats) -> tuple[float, core.Floats]:
    """Return what ``log w_t`` is a sum of.

    Returns
    -------
    total : float
        Sum over all features of ``numerics.log((1 - beta) / (1 - alpha))``.
    terms : float64 (p,)
        What each feature of a subset adds to it:
        ``numerics.log(beta / alpha) - numerics.log((1 - beta) / (1 - alpha))``.
    """
    terms, total = np.empty(len(beta)), 0.0
    for start in range(0, len(beta), _PIECE):
        piece = slice(start, start + _PIECE)
        absent = _log_ratio(1.0 - beta[piece], 1.0 - alpha[piece])
        terms[piece] = _log_ratio(beta[piece], alpha[piece]) - absent
        total += float(absent.sum())
    return total, terms


def _log_ratio(above: core.Floats, below: core.Floats) -> core.Floats:
    return core.numerics.logs(np.maximum(above / np.maximum(below, LEAST_CHANCE), _LEAST_RATIO))


def weights_by(subsets: Subsets, n_subsets: int, ratios: tuple[float, core.Floats]) -> core.Floats:
    """Return ``w_t``, at most 1e50, from :func:`log_ratios`; float64 (n_subsets,)."""
    total, terms = ratios
    sums = np.zeros(n_subsets)
    for features, owners in subsets:
        sums += np.bincount(owners, terms[features], n_subsets)
    return np.minimum(core.numerics.powers(np.minimum(total + sums, 200.0)), LARGEST_WEIGHT)


def effective_number(weights: core.Floats) -> float:
    """Return how many equally weighted models the weights are worth (Eq. 16)."""
    squares = float((weights * weights).sum())
    total = float(weights.sum())
    return total * total / squares if squares > 0 else 0.0


def gradient(
    subsets: Subsets, beta: core.Floats, weights: core.Floats, slopes: core.Floats
) -> core.Floats:
    """Return the gradient of the loss by beta (Eqs. 9, 12 and 15), in O(members + p).

    Eq. 15 needs no array of rows by models by features. With ``a_t`` the sum over rows of the
    loss's derivative times model t's prediction, and h_tj the derivative of ``log p(z_t | beta)``,
    which is one of two numbers for each feature,

        ``T g_j = sum(w h a) - sum(w h) sum(w h^2 a) / sum(w h^2)``,

    whose last factor is the optimal baseline of all rows. Every sum is over the subsets that hold
    j, or the total less that. A feature that no subset holds, or that all hold, has the gradient 0.

    Parameters
    ----------
    subsets : iterable of (features, owners)
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
    for features, owners in subsets:
        counts += np.bincount(features, minlength=n_features)
        held += np.bincount(features, weights[owners], n_features)
        held_slopes += np.bincount(features, moments[owners], n_features)
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


# Subsets that hold each feature with its own probability (Eq. 1 of the PRS paper), by hashes.

_LOW_BITS = np.uint64(11)
_UNIT = 2.0**-53
STORED = 4_000_000
"""Members of all subsets up to which they are kept: more are drawn again where they are needed."""
_MOST_DRAWS = 1000


class BernoulliSubsets:
    """The subsets of all folds, drawn by the same probabilities.

    Feature j is in subset (fold, t) where a hash of (key, fold, t, j) is below its probability. A
    subset of more than ``capacity`` features is drawn again, with the next hash.

    Parameters
    ----------
    alpha : float64 (p,)
        The probabilities; must not change.
    key : int
        64-bit key, another one for each drawing.
    n_models : int
        T, subsets of each fold.
    capacity : int
        The most features of a subset.
    n_folds : int
        Folds whose subsets may be kept in memory.
    """

    def __init__(
        self, alpha: core.Floats, key: int, n_models: int, capacity: int, n_folds: int
    ) -> None:
        self._alpha, self._key = alpha, key
        self._n_models, self._capacity = n_models, capacity
        fits = n_folds * n_models * capacity <= STORED
        self._stored: dict[int, tuple[core.Uints32, core.Ints]] | None = {} if fits else None

    def draw(self, fold: int, t: int) -> core.Uints32:
        """Return the features of one subset, ascending."""
        if self._stored is None:
            return self._drawn(fold, t)
        features, owners = next(self.of_fold(fold))
        first, last = np.searchsorted(owners, (t, t + 1))
        return features[first:last]

    def _drawn(self, fold: int, t: int, first_attempt: int = 0) -> core.Uints32:
        key = core.derive(core.derive(self._key, fold), t)
        for attempt in range(first_attempt, _MOST_DRAWS):
            (features,) = self._draw([core.derive(key, attempt)])
            if len(features) <= self._capacity:
                return features
        return features[: self._capacity]  # only where the probabilities are out of bounds

    def _draw(self, keys: list[int]) -> list[core.Uints32]:
        """Return the subset of each key."""
        found: list[list[core.Indices]] = [[] for _ in keys]
        each = np.array(keys, np.uint64)[:, None]
        for start in range(0, len(self._alpha), _PIECE):
            alpha = self._alpha[start : start + _PIECE]
            words = np.arange(start, start + len(alpha), dtype=np.uint64)
            uniform = (core.derive_array(each, words) >> _LOW_BITS).astype(np.float64) * _UNIT
            for own, is_held in zip(found, uniform < alpha, strict=True):
                own.append(start + np.flatnonzero(is_held))
        return [np.concatenate(own).astype(np.uint32) for own in found]

    def of_fold(self, fold: int) -> Iterator[tuple[core.Uints32, core.Ints]]:
        """Yield the subsets of a fold, in pieces; see :data:`Subsets`."""
        if self._stored is not None:
            if fold not in self._stored:
                self._stored[fold] = self._draw_fold(fold)
            yield self._stored[fold]
            return
        for t in range(self._n_models):
            features = self._drawn(fold, t)
            yield features, np.full(len(features), t, np.int64)

    def _draw_fold(self, fold: int) -> tuple[core.Uints32, core.Ints]:
        """Draw all subsets of a fold, as many together as a piece has room for."""
        key, found = core.derive(self._key, fold), []
        together = max(1, _PIECE // len(self._alpha))
        for start in range(0, self._n_models, together):
            numbers = range(start, min(start + together, self._n_models))
            drawn = self._draw([core.derive(core.derive(key, t), 0) for t in numbers])
            found += [
                features if len(features) <= self._capacity else self._drawn(fold, t, 1)
                for t, features in zip(numbers, drawn, strict=True)
            ]
        sizes = [len(features) for features in found]
        return np.concatenate(found), np.repeat(np.arange(self._n_models), sizes)


# Features on a grid, such as pixels: how much neighbours' probabilities differ.


def size_of(text: Any) -> tuple[int, int]:
    """Return height and width.

    Raises
    ------
    UsageError
        If the text is not two whole numbers above 0.
    """
    found = re.fullmatch(r"0*([1-9]\d{0,8})x0*([1-9]\d{0,8})", str(text), re.ASCII | re.IGNORECASE)
    if found is None:
        raise core.UsageError(
            f"grid: expected HEIGHTxWIDTH, such as 28x28, found {ascii(text)[:40]}."
        )
    return int(found[1]), int(found[2])


def grid_of(
    size: tuple[int, int], offered: core.Integers, positions: core.Integers | None
) -> core.Ints:
    """Return the feature of each pixel; features lie in the order of their table, row by row.

    Parameters
    ----------
    size : tuple of int
        Height and width; their product is the number of features offered.
    offered : int (n,)
        Stored positions of the features that may be drawn.
    positions : int (n_features,) or None
        Where each stored feature lies in the table; None where that is its stored position.
    """
    in_table = offered if positions is None else np.asarray(positions)[offered]
    return offered[np.argsort(in_table)].astype(np.int64).reshape(size)


def roughness(beta: core.Floats, grid: core.Ints) -> float:
    """Return the sum of the absolute differences of neighbours on a grid (fused lasso, Eq. 20)."""
    return sum(float(np.abs(np.diff(beta[grid], axis=axis)).sum()) for axis in (0, 1))


def roughness_slopes(beta: core.Floats, grid: core.Ints, strength: float) -> core.Floats:
    """Return a subgradient of ``strength`` times that: of equal neighbours it is 0; (p,)."""
    pixels = beta[grid]
    down, right = np.sign(np.diff(pixels, axis=0)), np.sign(np.diff(pixels, axis=1))
    by_pixel = np.zeros(pixels.shape)
    by_pixel[1:] += down
    by_pixel[:-1] -= down
    by_pixel[:, 1:] += right
    by_pixel[:, :-1] -= right
    out = np.zeros(len(beta))
    out[grid] = by_pixel
    return strength * out

"""Subsets that hold each feature with its own probability (Eq. 1 of the PRS paper), by hashes."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import GOLDEN, derive, derive_array, mix64_array
from srs_ooc.samplers.prs_gradient import Members

_PIECE = 1 << 16
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
        self, alpha: NDArray[np.float64], key: int, n_models: int, capacity: int, n_folds: int
    ) -> None:
        self._alpha, self._key = alpha, key
        self._n_models, self._capacity = n_models, capacity
        self._stored: dict[int, Members] | None = None
        if n_folds * n_models * capacity <= STORED:
            self._stored = {}

    def draw(self, fold: int, t: int) -> NDArray[np.uint32]:
        """Return the features of one subset, ascending."""
        if self._stored is None:
            return self._drawn(fold, t)
        members = self._kept(self._stored, fold)
        first, last = np.searchsorted(members.owners, (t, t + 1))
        return members.features[first:last]

    def _drawn(self, fold: int, t: int, first_attempt: int = 0) -> NDArray[np.uint32]:
        key = derive(derive(self._key, fold), t)
        for attempt in range(first_attempt, _MOST_DRAWS):
            features = self._draw(derive(key, attempt))
            if len(features) <= self._capacity:
                return features
        return features[: self._capacity]  # only where the probabilities are out of bounds

    def _draw(self, key: int) -> NDArray[np.uint32]:
        found = []
        for start in range(0, len(self._alpha), _PIECE):
            alpha = self._alpha[start : start + _PIECE]
            words = np.arange(start, start + len(alpha), dtype=np.uint64)
            uniform = (derive_array(key, words) >> _LOW_BITS).astype(np.float64) * _UNIT
            found.append(start + np.flatnonzero(uniform < alpha))
        return np.concatenate(found).astype(np.uint32)

    def of_fold(self, fold: int) -> Iterator[Members]:
        """Yield the subsets of a fold, in pieces."""
        if self._stored is not None:
            yield self._kept(self._stored, fold)
            return
        for t in range(self._n_models):
            features = self._drawn(fold, t)
            yield Members(features, np.full(len(features), t, np.int64))

    def _kept(self, stored: dict[int, Members], fold: int) -> Members:
        if fold not in stored:
            stored[fold] = self._draw_fold(fold)
        return stored[fold]

    def _draw_fold(self, fold: int) -> Members:
        """Draw all subsets of a fold, as many together as a piece has room for."""
        n_features, found = len(self._alpha), []
        together = max(1, _PIECE // n_features)
        for start in range(0, self._n_models, together):
            found += self._draw_some(fold, range(start, min(start + together, self._n_models)))
        sizes = [len(features) for features in found]
        return Members(np.concatenate(found), np.repeat(np.arange(self._n_models), sizes))

    def _draw_some(self, fold: int, numbers: range) -> list[NDArray[np.uint32]]:
        if len(self._alpha) > _PIECE:
            return [self._drawn(fold, t) for t in numbers]
        key = derive(self._key, fold)
        keys = np.array([derive(derive(key, t), 0) for t in numbers], np.uint64)
        mixed = mix64_array(np.arange(len(self._alpha), dtype=np.uint64) + np.uint64(GOLDEN))
        hashes = mix64_array(keys[:, None] + mixed)  # derive_array of each key
        is_held = (hashes >> _LOW_BITS).astype(np.float64) * _UNIT < self._alpha
        found = [np.flatnonzero(held).astype(np.uint32) for held in is_held]
        return [
            features if len(features) <= self._capacity else self._drawn(fold, t, 1)
            for t, features in zip(numbers, found, strict=True)
        ]

    @staticmethod
    def nbytes(n_models: int, capacity: int, n_folds: int) -> int:
        """Return the most bytes that subsets kept in memory take."""
        members = n_folds * n_models * capacity
        return 12 * (members if members <= STORED else n_models * capacity)

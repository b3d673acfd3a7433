"""Subsets that hold each feature with its own probability (Eq. 1 of the PRS paper), by hashes."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import derive, derive_array
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
        key = derive(derive(self._key, fold), t)
        for attempt in range(_MOST_DRAWS):
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
        if self._stored is None:
            for t in range(self._n_models):
                features = self.draw(fold, t)
                yield Members(features, np.full(len(features), t, np.int64))
            return
        if fold not in self._stored:
            drawn = [self.draw(fold, t) for t in range(self._n_models)]
            sizes = [len(features) for features in drawn]
            self._stored[fold] = Members(
                np.concatenate(drawn), np.repeat(np.arange(self._n_models), sizes)
            )
        yield self._stored[fold]

    @staticmethod
    def nbytes(n_models: int, capacity: int, n_folds: int) -> int:
        """Return the most bytes that subsets kept in memory take."""
        members = n_folds * n_models * capacity
        return 12 * (members if members <= STORED else n_models * capacity)

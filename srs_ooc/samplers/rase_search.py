"""How RaSE searches, and what follows from the subspaces it kept."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.records import Criterion

CROSS_VALIDATION, OUT_OF_BAG, VALIDATION = "cv", "oob", "validation"
RIC, EBIC = "ric", "ebic"
"""Ratio information criterion, and extended BIC: of the training rows, without folds."""


@dataclass(frozen=True)
class Search:
    """How RaSE searches.

    Attributes
    ----------
    n_models, n_candidates : int
        B1, and B2 subspaces for each.
    largest : int
        D: the most features of a subspace.
    n_rounds : int
        Rounds, counted from the first.
    criterion : {'cv', 'oob', 'validation', 'ric', 'ebic'}
        Rows by which the best subspace is chosen, or what is computed of the training rows.
    n_folds : int
        Folds, or samples with replacement.
    floor : float
        C0.
    gamma : float
        Of ``ebic``.
    """

    n_models: int
    n_candidates: int
    largest: int
    n_rounds: int
    criterion: str
    n_folds: int
    floor: float
    gamma: float = 0.0

    def information(self, n_features: int) -> Criterion | None:
        """Return the criterion computed of the training rows; None for a held-out loss."""
        if self.criterion not in (RIC, EBIC):
            return None
        return Criterion(self.criterion, self.gamma, n_features)


def batch_size(n_subspaces: int, largest: int, n_features: int, capacity: int) -> int:
    """Return how many of so many subspaces, of at most ``largest`` features, fit an iteration.

    At least 1: a cap too small for one is refused elsewhere, with a number that this enters.
    """
    if capacity >= n_features:
        return n_subspaces
    return max(1, min(n_subspaces, capacity // largest))


def eta(subspaces: list[NDArray[np.uint32]]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the features that some subspaces hold, ascending, and how many hold each."""
    if not subspaces:
        return np.zeros(0, np.uint32), np.zeros(0, np.int64)
    members, counts = np.unique(np.concatenate(subspaces), return_counts=True)
    return members, counts.astype(np.int64)

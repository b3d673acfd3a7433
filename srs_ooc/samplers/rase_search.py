"""How RaSE searches, and what follows from the subspaces it kept."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CROSS_VALIDATION, OUT_OF_BAG, VALIDATION = "cv", "oob", "validation"


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
    criterion : {'cv', 'oob', 'validation'}
        Rows by which the best subspace is chosen.
    n_folds : int
        Folds, or samples with replacement.
    floor : float
        C0.
    """

    n_models: int
    n_candidates: int
    largest: int
    n_rounds: int
    criterion: str
    n_folds: int
    floor: float


def batch_size(n_subspaces: int, largest: int, n_features: int, capacity: int) -> int:
    """Return how many of so many subspaces, of at most ``largest`` features, fit an iteration."""
    return n_subspaces if capacity >= n_features else min(n_subspaces, capacity // largest)


def eta(subspaces: list[NDArray[np.uint32]]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the features that some subspaces hold, ascending, and how many hold each."""
    if not subspaces:
        return np.zeros(0, np.uint32), np.zeros(0, np.int64)
    members, counts = np.unique(np.concatenate(subspaces), return_counts=True)
    return members, counts.astype(np.int64)

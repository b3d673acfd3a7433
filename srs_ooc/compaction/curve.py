"""Accuracy on rows held out against the number of features, and the size that is enough."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 50, 70, 100, 140, 200)
"""Numbers of features that are tried."""


def sizes_up_to(most: int, *others: int) -> list[int]:
    """Return the sizes to try among ``most`` features; ``others`` are tried as well."""
    return sorted({min(size, most) for size in (*SIZES, *others)} - {0})


@dataclass(frozen=True)
class Curve:
    """What sets of growing size are worth.

    Attributes
    ----------
    sizes : list of int
        Ascending.
    scores : float64 (n_folds, n_sizes)
        On the rows held out of each fold, of each repeat: the share of rows predicted right, or
        the share of the variance of numbers.
    """

    sizes: list[int]
    scores: NDArray[np.float64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean over folds; float64 (n_sizes,)."""
        means: NDArray[np.float64] = self.scores.mean(axis=0)
        return means

    @property
    def errors(self) -> NDArray[np.float64]:
        """Standard error of each mean, folds taken as independent; 0 of a single fold."""
        return standard_error(self.scores)

    @property
    def best(self) -> int:
        """Place of the best size, the smallest of equal ones."""
        return int(np.argmax(self.means))

    def smallest(self, most: int | None = None) -> int:
        """Return the smallest size whose mean is within one standard error of the best.

        Parameters
        ----------
        most : int, optional
            Larger sizes are not looked at.

        Raises
        ------
        ValueError
            If no size is that small.
        """
        n = len([size for size in self.sizes if most is None or size <= most])
        if n == 0:
            raise ValueError(f"expected a size of at most {most}, found {self.sizes[0]} and more")
        means, errors = self.means[:n], self.errors[:n]
        best = int(np.argmax(means))
        return self.sizes[int(np.argmax(means >= means[best] - errors[best]))]


def standard_error(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard error of the mean of each column; 0 of a single row."""
    n = len(scores)
    if n < 2:
        return np.zeros(scores.shape[1])
    spread: NDArray[np.float64] = scores.std(axis=0, ddof=1) / np.sqrt(n)
    return spread

"""Features on a grid, such as pixels: how much neighbours' probabilities differ."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError

NBYTES = 40
"""Bytes for each feature: its place, its neighbours' differences, and their sums."""


class GridSize:
    """Height and width of a grid, as text: ``28x28``."""

    def canonical(self, name: str, value: Any) -> str:
        """Return the text without leading zeros."""
        return "x".join(map(str, size_of(value)))


def size_of(text: Any) -> tuple[int, int]:
    """Return height and width.

    Raises
    ------
    UsageError
        If the text is not two whole numbers above 0.
    """
    parts = str(text).lower().split("x")
    if len(parts) != 2 or not all(_is_number(part) for part in parts):
        raise UsageError(f"--grid: expected HEIGHTxWIDTH, such as 28x28, found {ascii(text)[:40]}.")
    return int(parts[0]), int(parts[1])


def _is_number(part: str) -> bool:
    return part.isascii() and part.isdigit() and len(part) < 10 and int(part) > 0


@dataclass(frozen=True)
class Grid:
    """Which feature lies where.

    Attributes
    ----------
    features : int64 (height, width)
        The feature of each pixel.
    """

    features: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        size: tuple[int, int],
        offered: NDArray[np.integer[Any]],
        positions: NDArray[np.integer[Any]] | None,
    ) -> Self:
        """Return a grid of features in the order of their table, row by row.

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
        return cls(offered[np.argsort(in_table)].astype(np.int64).reshape(size))

    def roughness(self, beta: NDArray[np.float64]) -> float:
        """Return the sum of absolute differences of neighbours (Eq. 20, the last term's sums)."""
        pixels = beta[self.features]
        down, right = np.diff(pixels, axis=0), np.diff(pixels, axis=1)
        return float(np.abs(down).sum()) + float(np.abs(right).sum())

    def slopes(self, beta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a subgradient of that, float64 (p,): of equal neighbours the difference has 0."""
        pixels = beta[self.features]
        down, right = np.sign(np.diff(pixels, axis=0)), np.sign(np.diff(pixels, axis=1))
        by_pixel = np.zeros(pixels.shape)
        by_pixel[1:] += down
        by_pixel[:-1] -= down
        by_pixel[:, 1:] += right
        by_pixel[:, :-1] -= right
        out = np.zeros(len(beta))
        out[self.features] = by_pixel
        return out


@dataclass(frozen=True)
class Smoothness:
    """The penalty on neighbours that differ, the fused lasso of Eq. 20.

    Attributes
    ----------
    strength : float
        lambda_2.
    grid : Grid
        Which features are neighbours.
    """

    strength: float
    grid: Grid

    def value(self, beta: NDArray[np.float64]) -> float:
        """Return what is added to the objective."""
        return self.strength * self.grid.roughness(beta)

    def slopes(self, beta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what is added to its gradient, float64 (p,)."""
        return self.strength * self.grid.slopes(beta)

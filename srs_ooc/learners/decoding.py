"""Blocks of codes as tables of numbers, for models that need numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.text import MB
from srs_ooc.trees.block import Block

COPIES = 6
"""Tables of float64 that a worker may hold at once: the decoded one, the rows fitted on and those
held out, and what a model keeps of them and works in."""
MODEL_NBYTES = 8 * MB
"""Published allowance for a model beyond those."""


def decoded_nbytes(n_rows: int, n_columns: int, code_nbytes: int) -> int:
    """Return the bytes of a decoded block, of its parts, and of a model on it, as published."""
    return n_rows * n_columns * (8 * COPIES + code_nbytes + 2) + MODEL_NBYTES


@dataclass(frozen=True)
class DecodedBlock:
    """The columns of a subspace as numbers.

    Attributes
    ----------
    values : float64 (n_rows, n_columns)
        0 where missing. Each column is divided by a power of two, so that squares are finite.
    is_known : bool (n_rows, n_columns)
        Where nothing is missing.
    """

    values: NDArray[np.float64]
    is_known: NDArray[np.bool_]

    @classmethod
    def of(cls, block: Block, n_columns: int) -> "DecodedBlock":
        """Decode the first columns; a code stands for itself where a block has no values."""
        codes = block.as_columns(n_columns)
        is_known = (codes != np.iinfo(codes.dtype).max).T
        values = np.empty((block.n_rows, n_columns))
        for j, column in enumerate(codes):
            values[:, j] = column if block.values is None else _looked_up(block.values[j], column)
        values[~is_known] = 0.0
        return cls(values, is_known)

    def only(self, columns: NDArray[np.integer]) -> "DecodedBlock":
        """Return some of the columns."""
        return DecodedBlock(self.values[:, columns], self.is_known[:, columns])

    def standardised(
        self, fitted: NDArray[np.integer], held: NDArray[np.integer]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the rows to fit on and those held out, by mean and scale of the former alone.

        Means and standard deviations are of what is known; what is missing becomes the mean, 0.
        A column that does not vary is 0.
        """
        train, is_known = self.values[fitted], self.is_known[fitted]
        count = np.maximum(is_known.sum(axis=0), 1)
        mean = train.sum(axis=0) / count
        train -= mean
        train[~is_known] = 0.0
        spread = np.sqrt(np.square(train).sum(axis=0) / count)
        varies = spread > _ROUNDING * np.abs(mean)
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
        train *= scale
        rest = self.values[held]
        rest -= mean
        rest *= scale
        rest[~self.is_known[held]] = 0.0
        return train, rest


_ROUNDING = 1e-12
"""A deviation that is a smaller share of the mean than this is of rounding alone."""


def _looked_up(
    values: NDArray[np.float64], codes: NDArray[np.unsignedinteger]
) -> NDArray[np.float64]:
    exponent = int(np.frexp(np.abs(values).max())[1])
    scaled: NDArray[np.float64] = np.ldexp(values, -exponent)
    return scaled.take(codes, mode="clip")  # the code of what is missing is beyond the last

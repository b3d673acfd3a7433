"""Sparse linear: a few of many heavy-tailed features add up to the target."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.synthetic.normal import heavy, noise_cells
from srs_ooc.synthetic.problem import Cells, Truth, check_relevant, check_shape, distinct_places
from srs_ooc.synthetic.targets import additive_classes, signs

MAX_RELEVANT = 1000
_WORD = 101
_PLACES, _CELLS, _SIGNS, _NOISE = 1, 2, 3, 4
_NOISE_COLUMN = np.zeros(1, dtype=np.uint32)


@dataclass(frozen=True)
class Linear:
    """A table whose class is the sign of a sparse linear score with heavy tails.

    All features, and the noise of the score, are independent with the law of half Student's t with
    2 degrees of freedom, cut at the largest cell. The score adds the relevant features with random
    signs and equal weights, and noise of half their weight together.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted.
    n_relevant : int
        Features in the score, 1 to 1000; they lie at random positions.
    seed : int
        Seed of the table.

    Raises
    ------
    UsageError
        If a parameter is outside its range.
    """

    name: ClassVar[str] = "linear"

    n_rows: int
    n_features: int
    n_relevant: int
    seed: int

    def __post_init__(self) -> None:
        check_shape(self.n_rows, self.n_features, self.seed)
        check_relevant(self.n_relevant, self.n_features, MAX_RELEVANT)

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        return noise_cells(self._key(_CELLS), start, stop, columns, heavy)

    def target(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        return additive_classes(
            self.cells(start, stop, self.positions),
            signs(self._key(_SIGNS), self.n_relevant),
            noise_cells(self._key(_NOISE), start, stop, _NOISE_COLUMN, heavy),
        )

    def truth(self) -> Truth:
        """Return the features in the score."""
        places = tuple(sorted(self.positions.tolist()))
        return Truth(places, {"linear": places})

    @cached_property
    def positions(self) -> NDArray[np.uint32]:
        """Source positions of the relevant features: uint32 (n_relevant,)."""
        return distinct_places(self._key(_PLACES), self.n_relevant, self.n_features)

    def _key(self, part: int) -> int:
        return key_of(Purpose.SYNTH, self.seed, _WORD, part)

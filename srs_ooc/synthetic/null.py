"""Noise: two equal classes that no feature is informative about."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.synthetic.correlated import block_cells
from srs_ooc.synthetic.normal import noise_cells
from srs_ooc.synthetic.problem import Cells, Truth, check_shape
from srs_ooc.synthetic.targets import shuffled_classes

BLOCK_SIZE = 20
CORRELATION = 0.9
_WORD = 104
_CELLS, _CLASSES = 1, 2


@dataclass(frozen=True)
class Noise:
    """A table of standard normal features, independent of the target.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted.
    seed : int
        Seed of the table.
    blocks : bool
        Features in correlated blocks of 20, as in :class:`~srs_ooc.synthetic.correlated.Blocks`;
        otherwise independent of one another too.

    Raises
    ------
    UsageError
        If a parameter is outside its range.
    """

    name: ClassVar[str] = "noise"

    n_rows: int
    n_features: int
    seed: int
    blocks: bool = False

    def __post_init__(self) -> None:
        check_shape(self.n_rows, self.n_features, self.seed)

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        key = self._key(_CELLS)
        if self.blocks:
            return block_cells(key, start, stop, columns, BLOCK_SIZE, CORRELATION)
        return noise_cells(key, start, stop, columns)

    def target(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        return self._classes[start:stop]

    def truth(self) -> Truth:
        """Return that no feature is relevant."""
        return Truth((), {})

    @cached_property
    def _classes(self) -> NDArray[np.uint8]:
        return shuffled_classes(self._key(_CLASSES), self.n_rows, self.n_rows // 2)

    def _key(self, part: int) -> int:
        return key_of(Purpose.SYNTH, self.seed, _WORD, part)

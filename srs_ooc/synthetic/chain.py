"""Chain: the first scenario of Section 4.2 of the paper as a table of fair bits.

The relevant features are r fair bits and the target is a function of them and of a hidden cell
number. Exact tables hold every cell equally often, so what is true of the distribution is true of
the table: trees grown on it are trees of infinite samples.

Irrelevant features of an exact table are functions of the repetition alone. The table is the
product of cells and repetitions, so all of them *together* are independent of the relevant
features and the target: at any node of any tree, whatever it was split on before, they decrease
no impurity at all. (They need not be independent of one another, which for many features would
take more rows than there are.) With one repetition they are constant.
"""

from dataclasses import dataclass

import numpy as np

from srs_ooc.base.arrays import Bytes, Ints, Uints32
from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import derive_array, scale_below
from srs_ooc.base.text import ceil_div
from srs_ooc.synthetic.cells import STEPS, Cells, noise_cells
from srs_ooc.synthetic.problems import Planted, find_planted

_CELL, _NOISE = 2, 3

Bits = Ints


@dataclass(frozen=True)
class Chain(Planted):
    """Target = parity of the first i of r bits, i uniform in 1..r: bit i has degree i - 1.

    Each bit is seen exactly beside all the bits before it. Another target of the cells is a
    subclass.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted.
    n_relevant : int
        r, 1 to 16; they lie at random positions.
    seed : int
        Seed of the positions and of the irrelevant features.
    exact : bool
        Every cell of the joint distribution ``n_rows / n_cells`` times; otherwise rows are drawn
        from it independently, and irrelevant features are normal and independent of everything.

    Raises
    ------
    UsageError
        If a parameter is outside its range, or an exact table has a number of rows that is no
        multiple of its cells.
    """

    name = "chain"
    most_relevant = 16

    exact: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        n_cells = self.n_cells(self.n_relevant)
        if self.exact and self.n_rows % n_cells:
            raise UsageError(
                f"--rows: expected a multiple of {n_cells}, the cells of an exact {self.name} of "
                f"{self.n_relevant}, found {self.n_rows}. Leave --rows or --exact out."
            )

    @staticmethod
    def n_cells(n_relevant: int) -> int:
        """Return r 2**r, the equally likely cells of the joint distribution: i, and the bits."""
        return n_relevant << n_relevant

    def cells(self, start: int, stop: int, columns: Uints32) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        if self.exact:  # what is irrelevant is a function of repetition and column
            n_cells = self.n_cells(self.n_relevant)
            first, last = start // n_cells, ceil_div(stop, n_cells)
            noise = noise_cells(self._key(_NOISE), first, last, columns)
            out = noise[np.arange(start, stop) // n_cells - first]
        else:
            out = noise_cells(self._key(_NOISE), start, stop, columns)
        numbers = self._cells(start, stop)
        at, which = find_planted(self.positions, columns)
        out[:, at] = STEPS * ((numbers[:, None] >> which) & 1)
        return out

    def target(self, start: int, stop: int) -> Bytes:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        return self.class_of(self._cells(start, stop)).astype(np.uint8)

    def class_of(self, cells: Bits) -> Bits:
        """Return the class of each cell, 0 or 1; the lowest r bits of a cell are the features."""
        length = (cells >> self.n_relevant) + 1
        return parity(cells & ((1 << length) - 1))

    def roles(self) -> dict[str, tuple[int, ...]]:
        """Return the relevant features, by degree."""
        return {f"degree {i}": (place,) for i, place in enumerate(self.positions.tolist())}

    def _cells(self, start: int, stop: int) -> Bits:
        n_cells, rows = self.n_cells(self.n_relevant), np.arange(start, stop)
        if self.exact:
            return rows % n_cells
        return scale_below(derive_array(self._key(_CELL), rows), n_cells).astype(np.int64)


def parity(numbers: Bits) -> Bits:
    """Return whether an odd number of the lowest 32 bits are set, of each number."""
    for shift in (16, 8, 4, 2, 1):
        numbers = numbers ^ (numbers >> shift)
    return numbers & 1

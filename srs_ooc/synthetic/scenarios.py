"""Chain, clique and marginal-only: the scenarios of Section 4.2 as tables of fair bits.

The relevant features are r fair bits and the target is a function of them and of a hidden cell
number. Exact tables hold every cell equally often, so what is true of the distribution is true of
the table: trees grown on it are trees of infinite samples.

Irrelevant features of an exact table are functions of the repetition alone. The table is the
product of cells and repetitions, so all of them *together* are independent of the relevant
features and the target: at any node of any tree, whatever it was split on before, they decrease no
impurity at all. (They need not be independent of one another, which for many features would take
more rows than there are.) With one repetition they are constant.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import Purpose, derive_array, key_of, scale_below
from srs_ooc.synthetic.normal import noise_cells
from srs_ooc.synthetic.problem import (
    STEPS,
    Cells,
    Truth,
    check_relevant,
    check_shape,
    distinct_places,
    find_planted,
)

MAX_RELEVANT = 16
_PLACES, _CELL, _NOISE = 1, 2, 3

Bits = NDArray[np.int64]


@dataclass(frozen=True)
class Scenario(ABC):
    """A table of one of the scenarios.

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

    name: ClassVar[str]

    n_rows: int
    n_features: int
    n_relevant: int
    seed: int = 0
    exact: bool = True

    def __post_init__(self) -> None:
        check_shape(self.n_rows, self.n_features, self.seed)
        check_relevant(self.n_relevant, self.n_features, MAX_RELEVANT)
        n_cells = self.n_cells(self.n_relevant)
        if self.exact and self.n_rows % n_cells:
            raise UsageError(
                f"--rows: expected a multiple of {n_cells}, the cells of an exact {self.name} of "
                f"{self.n_relevant}, found {self.n_rows}. Leave --rows or --exact out."
            )

    @staticmethod
    @abstractmethod
    def n_cells(n_relevant: int) -> int:
        """Return the number of equally likely cells of the joint distribution."""

    @abstractmethod
    def _target(self, cells: Bits) -> Bits:
        """Return the class of each cell, 0 or 1; the lowest r bits of a cell are the features."""

    @abstractmethod
    def _roles(self) -> dict[str, tuple[int, ...]]:
        """Return the relevant features by what they are."""

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        out = self._irrelevant(start, stop, columns)
        numbers = self._cells(start, stop)
        at, which = find_planted(self.positions, columns)
        out[:, at] = STEPS * ((numbers[:, None] >> which) & 1)
        return out

    def target(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        return self._target(self._cells(start, stop)).astype(np.uint8)

    def truth(self) -> Truth:
        """Return the relevant features, by role."""
        return Truth(tuple(sorted(self.positions.tolist())), self._roles())

    @cached_property
    def positions(self) -> NDArray[np.uint32]:
        """Source positions of the relevant features, first to last: uint32 (n_relevant,)."""
        return distinct_places(self._key(_PLACES), self.n_relevant, self.n_features)

    def _key(self, part: int) -> int:
        return key_of(Purpose.SYNTH, self.seed, part)

    def _cells(self, start: int, stop: int) -> Bits:
        n_cells, rows = self.n_cells(self.n_relevant), np.arange(start, stop)
        if self.exact:
            return rows % n_cells
        return scale_below(derive_array(self._key(_CELL), rows), n_cells).astype(np.int64)

    def _irrelevant(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return every column as if it were irrelevant: a function of (repetition, column)."""
        if not self.exact:
            return noise_cells(self._key(_NOISE), start, stop, columns)
        n_cells = self.n_cells(self.n_relevant)
        first = start // n_cells
        noise = noise_cells(self._key(_NOISE), first, (stop + n_cells - 1) // n_cells, columns)
        return noise[np.arange(start, stop) // n_cells - first]


class Chain(Scenario):
    """Target = parity of the first i of r bits, i uniform in 1..r: bit i has degree i - 1.

    Each bit is seen exactly beside all the bits before it.
    """

    name = "chain"

    @staticmethod
    def n_cells(n_relevant: int) -> int:
        """Return r 2**r: i, and the bits."""
        return n_relevant << n_relevant

    def _target(self, cells: Bits) -> Bits:
        length = (cells >> self.n_relevant) + 1
        return _parity(cells & ((1 << length) - 1))

    def _roles(self) -> dict[str, tuple[int, ...]]:
        return {f"degree {i}": (place,) for i, place in enumerate(self.positions.tolist())}


class Clique(Scenario):
    """Target = parity of r bits: each is informative only beside all the others (degree r - 1)."""

    name = "clique"

    @staticmethod
    def n_cells(n_relevant: int) -> int:
        """Return 2**r: the bits."""
        return 1 << n_relevant

    def _target(self, cells: Bits) -> Bits:
        return _parity(cells)

    def _roles(self) -> dict[str, tuple[int, ...]]:
        return {"clique": tuple(sorted(self.positions.tolist()))}


class Marginal(Scenario):
    """Target = one of r bits, which one uniform: each is informative, strongly relevant."""

    name = "marginal"

    @staticmethod
    def n_cells(n_relevant: int) -> int:
        """Return r 2**r: which bit, and the bits."""
        return n_relevant << n_relevant

    def _target(self, cells: Bits) -> Bits:
        target: Bits = (cells >> (cells >> self.n_relevant)) & 1
        return target

    def _roles(self) -> dict[str, tuple[int, ...]]:
        return {"marginal": tuple(sorted(self.positions.tolist()))}


def _parity(numbers: Bits) -> Bits:
    for shift in (16, 8, 4, 2, 1):
        numbers = numbers ^ (numbers >> shift)
    return numbers & 1

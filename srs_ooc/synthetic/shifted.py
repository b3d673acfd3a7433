"""Shifted features: the mean of a few features differs between two classes, and nothing else.

``shift`` has equal classes, as a study of few samples and many genes might; ``imbalance`` a class
of few rows.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.synthetic.normal import noise_cells
from srs_ooc.synthetic.problem import (
    CELL_LIMIT,
    STEPS,
    Cells,
    Truth,
    check_relevant,
    check_shape,
    distinct_places,
    find_planted,
)
from srs_ooc.synthetic.targets import shuffled_classes, signs

MAX_RELEVANT = 1000
MAX_SHIFT = 5.0
_WORD = 102
_PLACES, _CELLS, _SIGNS, _CLASSES = 1, 2, 3, 4


@dataclass(frozen=True)
class Shifted(ABC):
    """A table of independent standard normal features, some of them shifted in class 1.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted.
    n_relevant : int
        Shifted features, 1 to 1000; they lie at random positions.
    seed : int
        Seed of the table.
    size : float
        Difference of the means between the classes in standard deviations, above 0 and at most
        5; its sign is random for each feature.

    Raises
    ------
    UsageError
        If a parameter is outside its range.
    """

    name: ClassVar[str]

    n_rows: int
    n_features: int
    n_relevant: int
    seed: int
    size: float

    def __post_init__(self) -> None:
        check_shape(self.n_rows, self.n_features, self.seed)
        check_relevant(self.n_relevant, self.n_features, MAX_RELEVANT)
        if not 0 < self.size <= MAX_SHIFT:
            raise UsageError(
                f"--size: expected a number above 0 and at most {MAX_SHIFT:g}, found {self.size:g}."
            )

    @property
    @abstractmethod
    def n_ones(self) -> int:
        """Rows of class 1."""

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        out = noise_cells(self._key(_CELLS), start, stop, columns)
        at, which = find_planted(self.positions, columns)
        if len(at):
            steps = round(self.size * STEPS) * signs(self._key(_SIGNS), self.n_relevant)[which]
            shifted = out[:, at] + self._classes[start:stop, None] * steps
            out[:, at] = np.clip(shifted, -CELL_LIMIT, CELL_LIMIT)
        return out

    def target(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        return self._classes[start:stop]

    def truth(self) -> Truth:
        """Return the shifted features."""
        places = tuple(sorted(self.positions.tolist()))
        return Truth(places, {"shifted": places})

    @cached_property
    def positions(self) -> NDArray[np.uint32]:
        """Source positions of the shifted features: uint32 (n_relevant,)."""
        return distinct_places(self._key(_PLACES), self.n_relevant, self.n_features)

    @cached_property
    def _classes(self) -> NDArray[np.uint8]:
        return shuffled_classes(self._key(_CLASSES), self.n_rows, self.n_ones)

    def _key(self, part: int) -> int:
        return key_of(Purpose.SYNTH, self.seed, _WORD, part)


@dataclass(frozen=True)
class Shift(Shifted):
    """Shifted features in two classes of equal size; see :class:`Shifted`."""

    name: ClassVar[str] = "shift"

    size: float = 1.5

    @property
    def n_ones(self) -> int:
        """Half the rows."""
        return self.n_rows // 2


@dataclass(frozen=True)
class Imbalance(Shifted):
    """Shifted features where class 1 has few rows; see :class:`Shifted`.

    Parameters
    ----------
    share : float
        Share of the rows that are of class 1, above 0 and at most 0.5; one row at the least.
    """

    name: ClassVar[str] = "imbalance"

    size: float = 0.8
    share: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share <= 0.5:
            raise UsageError(
                f"--share: expected a number above 0 and at most 0.5, found {self.share:g}."
            )

    @property
    def n_ones(self) -> int:
        """``share`` of the rows, one at the least."""
        return max(1, round(self.share * self.n_rows))

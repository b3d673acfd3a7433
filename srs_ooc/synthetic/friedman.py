"""Friedman 1: a regression on five of many uniform features, two of which interact."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import Purpose, key_of
from srs_ooc.synthetic.normal import noise_cells, uniforms
from srs_ooc.synthetic.problem import STEPS, Cells, Truth, check_shape, distinct_places

N_RELEVANT = 5
_WORD = 105
_PLACES, _CELLS, _NOISE = 1, 2, 3
_NOISE_COLUMN = np.zeros(1, dtype=np.uint32)


@dataclass(frozen=True)
class Friedman:
    """A table whose target is a number (Friedman 1991, "Multivariate adaptive regression splines").

    All features are uniform on 0 .. 1 and independent; the target is
    10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5 plus standard normal noise, rounded to four
    decimals.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted; 5 features at the least, of which x1 to x5 lie
        at random positions.
    seed : int
        Seed of the table.

    Raises
    ------
    UsageError
        If a parameter is outside its range.
    """

    name: ClassVar[str] = "friedman"

    n_rows: int
    n_features: int
    seed: int

    def __post_init__(self) -> None:
        check_shape(self.n_rows, self.n_features, self.seed)
        if self.n_features < N_RELEVANT:
            raise UsageError(
                f"--features: expected {N_RELEVANT} or more, which the target depends on, "
                f"found {self.n_features}."
            )

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        return noise_cells(self._key(_CELLS), start, stop, columns, _unit)

    def target(self, start: int, stop: int) -> NDArray[np.float64]:
        """Return the target of rows ``start .. stop - 1``: float64 (stop - start,)."""
        x1, x2, x3, x4, x5 = self.cells(start, stop, self.positions).T / STEPS
        noise = noise_cells(self._key(_NOISE), start, stop, _NOISE_COLUMN)[:, 0] / STEPS
        y = 10.0 * _sine(x1 * x2) + 20.0 * (x3 - 0.5) ** 2 + 10.0 * x4 + 5.0 * x5 + noise
        rounded: NDArray[np.float64] = np.rint(y * STEPS) / STEPS
        return rounded

    def truth(self) -> Truth:
        """Return the five features of the target, by the term they stand in."""
        x1, x2, x3, x4, x5 = self.positions.tolist()
        return Truth(
            relevant=tuple(sorted((x1, x2, x3, x4, x5))),
            roles={
                "interaction": tuple(sorted((x1, x2))),
                "quadratic": (x3,),
                "linear": tuple(sorted((x4, x5))),
            },
        )

    @cached_property
    def positions(self) -> NDArray[np.uint32]:
        """Source positions of x1 to x5: uint32 (5,)."""
        return distinct_places(self._key(_PLACES), N_RELEVANT, self.n_features)

    def _key(self, part: int) -> int:
        return key_of(Purpose.SYNTH, self.seed, _WORD, part)


def _unit(hashes: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Map hashes to float64 uniform on 0 .. 1."""
    return 0.5 * uniforms(hashes) + 0.5


def _sine(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sin(pi x) of numbers from 0 to 1: no library's, so that tables are the same."""
    square = np.square(np.pi * np.minimum(x, 1.0 - x))
    series = np.ones_like(x)
    for k in range(11, 0, -1):
        series = 1.0 - series * square / (2 * k * (2 * k + 1))
    return np.pi * np.minimum(x, 1.0 - x) * series

"""Problems that only benchmarks and tests need, beside those of ``srs-ooc synth``.

As a script it writes the store of any problem, and the truth beside it, as ``srs-ooc synth`` does;
options are the problem's parameters:

    python benchmarks/more_problems.py shift OUT.zarr --rows 72 --features 500 --relevant 20

With ``--arrays`` it writes ``values.npy``, float32 (n, p), and ``target.npy`` beside it, too.
"""

import argparse
import json
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

import srs_ooc
from srs_ooc import synthetic
from srs_ooc.base.errors import UsageError
from srs_ooc.synthetic.cells import (
    CELL_LIMIT,
    STEPS,
    Cells,
    hash_grid,
    noise_cells,
    to_cells,
    uniforms,
)
from srs_ooc.synthetic.chain import Bits, Chain, parity
from srs_ooc.synthetic.problems import (
    Planted,
    Problem,
    additive_classes,
    describe,
    distinct_places,
    find_planted,
    rows,
    shuffled,
    signs,
)
from srs_ooc.synthetic.table_files import truth_path, write_table

PIECE_ROWS = 100
_PLACES = 1
_NOISE_COLUMN = np.zeros(1, dtype=np.uint32)


class OfOneRole(Planted):
    """A table whose relevant features are all of one role."""

    role: ClassVar[str]

    def roles(self) -> dict[str, tuple[int, ...]]:
        """Return the relevant features, all of one role."""
        return {self.role: tuple(sorted(self.positions.tolist()))}


# Clique and marginal-only: the other scenarios of Section 4.2 as tables of fair bits.


class Clique(OfOneRole, Chain):
    """Target = parity of r bits: each is informative only beside all the others (degree r - 1)."""

    name = role = "clique"

    @staticmethod
    def n_cells(n_relevant: int) -> int:
        """Return 2**r: the bits."""
        return 1 << n_relevant

    def class_of(self, cells: Bits) -> Bits:
        """Return the parity of each cell."""
        return parity(cells)


class Marginal(OfOneRole, Chain):
    """Target = one of r bits, which one uniform: each is informative, strongly relevant.

    The cells are as many as the chain's: which bit, and the bits.
    """

    name = role = "marginal"

    def class_of(self, cells: Bits) -> Bits:
        """Return the bit that each cell names."""
        target: Bits = (cells >> (cells >> self.n_relevant)) & 1
        return target


# Shifted features: the mean of a few features differs between two classes, and nothing else.
#
# ``shift`` has equal classes, as a study of few samples and many genes might; ``imbalance`` a class
# of few rows.

MAX_SHIFT = 5.0
_SHIFTED_CELLS, _SHIFTED_SIGNS, _CLASSES = 2, 3, 4


@dataclass(frozen=True)
class Shift(OfOneRole):
    """A table of normal features, some of them shifted in class 1; classes are of equal size.

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

    word = (102,)
    name = "shift"
    role = "shifted"

    size: float = 1.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.size <= MAX_SHIFT:
            raise UsageError(
                f"--size: expected a number above 0 and at most {MAX_SHIFT:g}, found {self.size:g}."
            )

    @property
    def n_ones(self) -> int:
        """Rows of class 1: half of them."""
        return self.n_rows // 2

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        out = noise_cells(self._key(_SHIFTED_CELLS), start, stop, columns)
        at, which = find_planted(self.positions, columns)
        if len(at):
            steps = (
                round(self.size * STEPS) * signs(self._key(_SHIFTED_SIGNS), self.n_relevant)[which]
            )
            shifted = out[:, at] + self._classes[start:stop, None] * steps
            out[:, at] = np.clip(shifted, -CELL_LIMIT, CELL_LIMIT)
        return out

    def target(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        return self._classes[start:stop]

    @cached_property
    def _classes(self) -> NDArray[np.uint8]:
        is_one = np.arange(self.n_rows) < self.n_ones
        return shuffled(self._key(_CLASSES), is_one.astype(np.uint8))


@dataclass(frozen=True)
class Imbalance(Shift):
    """Shifted features where class 1 has few rows; see :class:`Shift`.

    Parameters
    ----------
    share : float
        Share of the rows that are of class 1, above 0 and at most 0.5; one row at the least.
    """

    name = "imbalance"

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


# Friedman 1: a regression on five of many uniform features, two of which interact.

N_RELEVANT = 5
_FRIEDMAN_CELLS, _FRIEDMAN_NOISE = 2, 3


@dataclass(frozen=True)
class Friedman(Problem):
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

    name = "friedman"
    word = (105,)

    n_rows: int
    n_features: int
    seed: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_features < N_RELEVANT:
            raise UsageError(
                f"--features: expected {N_RELEVANT} or more, which the target depends on, "
                f"found {self.n_features}."
            )

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        grid = hash_grid(self._key(_FRIEDMAN_CELLS), np.arange(start, stop), columns)
        return to_cells(0.5 * uniforms(grid) + 0.5)

    def target(self, start: int, stop: int) -> NDArray[Any]:
        """Return the target of rows ``start .. stop - 1``: float64 (stop - start,)."""
        x1, x2, x3, x4, x5 = self.cells(start, stop, self.positions).T / STEPS
        noise = noise_cells(self._key(_FRIEDMAN_NOISE), start, stop, _NOISE_COLUMN)[:, 0] / STEPS
        y = 10.0 * _sine(x1 * x2) + 20.0 * (x3 - 0.5) ** 2 + 10.0 * x4 + 5.0 * x5 + noise
        rounded: NDArray[np.float64] = np.rint(y * STEPS) / STEPS
        return rounded

    def roles(self) -> dict[str, tuple[int, ...]]:
        """Return the five features of the target, by the term they stand in."""
        x1, x2, x3, x4, x5 = self.positions.tolist()
        terms = {"interaction": (x1, x2), "quadratic": (x3,), "linear": (x4, x5)}
        return {term: tuple(sorted(places)) for term, places in terms.items()}

    @cached_property
    def positions(self) -> NDArray[np.uint32]:
        """Source positions of x1 to x5: uint32 (5,)."""
        return distinct_places(self._key(_PLACES), N_RELEVANT, self.n_features)


def _sine(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sin(pi x) of numbers from 0 to 1: no library's, so that tables are the same."""
    square = np.square(np.pi * np.minimum(x, 1.0 - x))
    series = np.ones_like(x)
    for k in range(11, 0, -1):
        series = 1.0 - series * square / (2 * k * (2 * k + 1))
    return np.pi * np.minimum(x, 1.0 - x) * series


# Sparse linear: a few of many heavy-tailed features add up to the target.

_LINEAR_CELLS, _LINEAR_SIGNS, _LINEAR_NOISE = 2, 3, 4


class Linear(OfOneRole):
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

    name = role = "linear"
    word = (101,)

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        return heavy_cells(self._key(_LINEAR_CELLS), start, stop, columns)

    def target(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        return additive_classes(
            self.cells(start, stop, self.positions),
            signs(self._key(_LINEAR_SIGNS), self.n_relevant),
            heavy_cells(self._key(_LINEAR_NOISE), start, stop, _NOISE_COLUMN),
        )


def heavy_cells(key: int, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
    """Return cells of half Student's t with 2 degrees of freedom, by inversion.

    int32 (stop - start, len(columns)). The variance is infinite; one value in 400 is beyond the
    largest cell.
    """
    hashes = hash_grid(key, np.arange(start, stop), columns)
    v = ((hashes >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-51 - 1.0
    return to_cells(v / np.sqrt(2.0 * (1.0 - v) * (1.0 + v)))


# All problems by name, and their stores.

PROBLEMS: dict[str, type[Problem]] = synthetic.PROBLEMS | {
    kind.name: kind for kind in (Clique, Marginal, Linear, Friedman, Shift, Imbalance)
}


def write(problem: Problem, out: Path) -> None:
    """Write the store of a problem, and its truth; that of a regression from the whole table."""
    if not isinstance(problem, Friedman):
        write_table(problem, out)
        return
    n_rows = problem.n_rows
    srs_ooc.ingest(rows(problem, 0, n_rows), out, target=problem.target(0, n_rows))
    truth_path(out).write_text(json.dumps(describe(problem), indent=1) + "\n", encoding="utf-8")


def write_arrays(problem: Problem, folder: Path) -> None:
    """Write a problem as NumPy files, piece by piece: classes as integers, numbers as floats."""
    shape = (problem.n_rows, problem.n_features)
    values = np.lib.format.open_memmap(folder / "values.npy", "w+", np.float32, shape)
    for start in range(0, problem.n_rows, PIECE_ROWS):
        stop = min(start + PIECE_ROWS, problem.n_rows)
        values[start:stop] = rows(problem, start, stop)
    target = problem.target(0, problem.n_rows)
    is_regression = target.dtype == np.float64
    np.save(folder / "target.npy", target if is_regression else target.astype(np.int64))


def main() -> None:
    """Write the problem that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(required=True, metavar="PROBLEM")
    for name, kind in PROBLEMS.items():
        its = kinds.add_parser(name)
        its.add_argument("out", type=Path)
        its.add_argument("--arrays", action="store_true")
        its.set_defaults(kind=kind, seed=0)
        for field in fields(kind):  # type: ignore[arg-type]
            option = f"--{field.name.removeprefix('n_').replace('_', '-')}"
            how: dict[str, Any] = {"type": field.type, "default": argparse.SUPPRESS}
            if field.type is bool:
                how = {"action": "store_true"}
            its.add_argument(option, dest=field.name, **how)
    given = vars(parser.parse_args())
    kind, out, has_arrays = (given.pop(name) for name in ("kind", "out", "arrays"))
    problem = kind(**given)
    write(problem, out)
    if has_arrays:
        write_arrays(problem, out.parent)


if __name__ == "__main__":
    main()

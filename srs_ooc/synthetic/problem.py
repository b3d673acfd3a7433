"""What a synthetic problem is, and the two ways its table is read: by rows and by columns.

Every value is a multiple of 10**-4 with absolute value below 10, held as the integer number of
those steps (a *cell*). A CSV file and a store made from one problem therefore agree exactly.
"""

import dataclasses
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import below
from srs_ooc.base.text import ceil_div

STEPS = 10_000
CELL_LIMIT = 99_999
PIECE_CELLS = 1 << 19
MAX_SIDE = 1 << 32
TARGET_NAME = "target"

Cells = NDArray[np.int32]
Target = NDArray[np.uint8] | NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """What a problem knows of its own table.

    Parameters
    ----------
    relevant : tuple of int
        Source positions of the features that carry information on the target, ascending.
    roles : dict of str to tuple of int
        The relevant features by what they are, such as ``informative`` and ``redundant``.
    blocks : tuple of tuple of int
        Features that stand in for one another, a tuple for each block with a cause; empty where
        each relevant feature stands for itself.
    """

    relevant: tuple[int, ...]
    roles: dict[str, tuple[int, ...]]
    blocks: tuple[tuple[int, ...], ...] = ()


class Problem(Protocol):
    """A table that can be computed anywhere, in any order, from its parameters and seed.

    Implementations are frozen dataclasses: their fields are the parameters.
    """

    name: ClassVar[str]

    @property
    def n_rows(self) -> int:
        """Rows of the table."""
        ...

    @property
    def n_features(self) -> int:
        """Features of the table, the target not counted."""
        ...

    def cells(self, start: int, stop: int, columns: NDArray[np.uint32]) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        ...

    def target(self, start: int, stop: int) -> Target:
        """Return the target of rows ``start .. stop - 1``: (stop - start,).

        uint8 class codes, or, where the problem is a regression, float64 numbers of at most four
        decimals, above -10 and below 100.
        """
        ...

    def truth(self) -> Truth:
        """Return which features are relevant, and how."""
        ...


def feature_name(position: int) -> str:
    """Return the name of the feature at a source position."""
    return f"f{position}"


def to_cells(values: NDArray[np.float64]) -> Cells:
    """Round values to cells, cut at the largest cell."""
    steps = np.rint(values * STEPS)
    return np.clip(steps, -CELL_LIMIT, CELL_LIMIT, out=steps).astype(np.int32)


def rows(problem: Problem, start: int, stop: int) -> NDArray[np.float64]:
    """Return rows ``start .. stop - 1`` as float64 (stop - start, n_features)."""
    columns = np.arange(problem.n_features, dtype=np.uint32)
    return problem.cells(start, stop, columns) / STEPS


def columns(problem: Problem, positions: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Return the features at ``positions`` as float64 (len(positions), n_rows)."""
    values = np.empty((len(positions), problem.n_rows))
    step = max(1, PIECE_CELLS // max(1, len(positions)))
    for start in range(0, problem.n_rows, step):
        stop = min(start + step, problem.n_rows)
        np.divide(problem.cells(start, stop, positions).T, STEPS, out=values[:, start:stop])
    return values


def check_shape(n_rows: int, n_features: int, seed: int) -> None:
    """Raise UsageError unless the table has a size that can be generated."""
    for option, value, least in (("--rows", n_rows, 2), ("--features", n_features, 1)):
        if not least <= value < MAX_SIDE:
            raise UsageError(
                f"{option}: expected a number from {least} to {MAX_SIDE - 1}, found {value}."
            )
    if seed < 0:
        raise UsageError(f"--seed: expected 0 or more, found {seed}.")


def distinct_places(key: int, n_places: int, n_features: int) -> NDArray[np.uint32]:
    """Return distinct random source positions, in the order drawn: uint32 (n_places,)."""
    drawn: dict[int, None] = {}
    for counter in count():
        drawn[below(key, counter, n_features)] = None
        if len(drawn) == n_places:
            break
    return np.array(list(drawn), dtype=np.uint32)


def find_planted(
    positions: NDArray[np.uint32], columns: NDArray[np.uint32]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find which of the ``columns`` asked for are planted at ``positions``, both distinct.

    Returns
    -------
    at, which : intp (n_found,)
        Places in ``columns``, ascending, and the place in ``positions`` of each.
    """
    order = np.argsort(positions)
    places = np.searchsorted(positions, columns, sorter=order)
    which = order[np.minimum(places, len(positions) - 1)]
    at = np.flatnonzero(positions[which] == columns)
    return at, which[at]


def check_relevant(n_relevant: int, n_features: int, most: int) -> None:
    """Raise UsageError unless so many relevant features can be planted."""
    if not 1 <= n_relevant <= min(n_features, most):
        raise UsageError(
            f"--relevant: expected 1 to {min(n_features, most)} (at most --features and at most "
            f"{most}), found {n_relevant}."
        )


def describe(problem: Problem) -> dict[str, Any]:
    """Return the JSON-ready record that is written beside a table: problem, parameters, truth."""
    truth = problem.truth()
    record: dict[str, Any] = {
        "problem": problem.name,
        "parameters": dataclasses.asdict(problem),  # type: ignore[call-overload]
        "target": TARGET_NAME,
        "relevant": [feature_name(position) for position in truth.relevant],
        "roles": {
            role: [feature_name(position) for position in positions]
            for role, positions in truth.roles.items()
        },
    }
    if truth.blocks:
        record["blocks"] = [[feature_name(i) for i in block] for block in truth.blocks]
    return record


def pieces(n_rows: int, width: int) -> list[tuple[int, int]]:
    """Return row ranges of at most :data:`PIECE_CELLS` cells each, one row at the least."""
    step = max(1, PIECE_CELLS // max(1, width))
    return [(i * step, min((i + 1) * step, n_rows)) for i in range(ceil_div(n_rows, step))]

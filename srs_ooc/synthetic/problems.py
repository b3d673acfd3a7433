"""What a synthetic problem is, and the two ways its table is read: by rows and by columns."""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import count
from typing import Any, ClassVar

import numpy as np

from srs_ooc.base.arrays import Bytes, Floats, Indices, Integers, Ints, Uints32
from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import Purpose, below, derive_array, key_of
from srs_ooc.base.text import ceil_div
from srs_ooc.synthetic.cells import STEPS, Cells

PIECE_CELLS = 1 << 19
MAX_SIDE = 1 << 32
TARGET_NAME = "target"


class Problem(ABC):
    """A table that can be computed anywhere, in any order, from its parameters and seed.

    Subclasses are frozen dataclasses: their fields are the parameters.
    """

    name: ClassVar[str]
    word: ClassVar[tuple[int, ...]] = ()
    """What keys have beside the seed, so that problems of one seed share no numbers."""

    n_rows: int
    n_features: int
    seed: int

    def __post_init__(self) -> None:
        for option, value, least in (
            ("--rows", self.n_rows, 2),
            ("--features", self.n_features, 1),
        ):
            if not least <= value < MAX_SIDE:
                raise UsageError(
                    f"{option}: expected a number from {least} to {MAX_SIDE - 1}, found {value}."
                )
        if self.seed < 0:
            raise UsageError(f"--seed: expected 0 or more, found {self.seed}.")

    @abstractmethod
    def cells(self, start: int, stop: int, columns: Uints32) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""

    @abstractmethod
    def target(self, start: int, stop: int) -> Bytes:
        """Return the class codes of rows ``start .. stop - 1``: uint8 (stop - start,)."""

    @abstractmethod
    def roles(self) -> dict[str, tuple[int, ...]]:
        """Return the relevant features by what they are: source positions, ascending.

        Relevant are those that carry information on the target.
        """

    @property
    def relevant(self) -> tuple[int, ...]:
        """Source positions of the relevant features, ascending."""
        return tuple(sorted(place for places in self.roles().values() for place in places))

    @property
    def blocks_with_cause(self) -> tuple[tuple[int, ...], ...]:
        """Features that stand in for one another; empty where each stands for itself."""
        return ()

    @cached_property
    def _stored(self) -> Uints32:
        from srs_ooc.ingestion.ingest_options import stored_positions

        return stored_positions(self.n_features)

    def read(self, start: int, stop: int) -> Floats:
        """Return the values (stop - start, n_rows) of stored features ``start .. stop - 1``."""
        return columns(self, self._stored[start:stop])

    def _key(self, part: int) -> int:
        """Return the key of what is numbered ``part`` in the problem."""
        return key_of(Purpose.SYNTH, self.seed, *self.word, part)


def feature_name(position: int) -> str:
    """Return the name of the feature at a source position."""
    return f"f{position}"


def rows(problem: Problem, start: int, stop: int) -> Floats:
    """Return rows ``start .. stop - 1`` as float64 (stop - start, n_features)."""
    return problem.cells(start, stop, np.arange(problem.n_features, dtype=np.uint32)) / STEPS


def columns(problem: Problem, positions: Uints32) -> Floats:
    """Return the features at ``positions`` as float64 (len(positions), n_rows)."""
    values = np.empty((len(positions), problem.n_rows))
    for start, stop in pieces(problem.n_rows, len(positions)):
        np.divide(problem.cells(start, stop, positions).T, STEPS, out=values[:, start:stop])
    return values


def distinct_places(key: int, n_places: int, n_features: int) -> Uints32:
    """Return distinct random source positions, in the order drawn: uint32 (n_places,)."""
    drawn: dict[int, None] = {}
    counter = count()
    while len(drawn) < n_places:
        drawn[below(key, next(counter), n_features)] = None
    return np.array(list(drawn), dtype=np.uint32)


def find_planted(positions: Uints32, columns: Uints32) -> tuple[Indices, Indices]:
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


def describe(problem: Problem) -> dict[str, Any]:
    """Return the JSON-ready record that is written beside a table: problem, parameters, truth."""
    record: dict[str, Any] = {
        "problem": problem.name,
        "parameters": asdict(problem),  # type: ignore[call-overload]
        "target": TARGET_NAME,
        "relevant": list(map(feature_name, problem.relevant)),
        "roles": {role: list(map(feature_name, some)) for role, some in problem.roles().items()},
    }
    if problem.blocks_with_cause:
        record["blocks"] = [list(map(feature_name, some)) for some in problem.blocks_with_cause]
    return record


def pieces(n_rows: int, width: int) -> list[tuple[int, int]]:
    """Return row ranges of at most :data:`PIECE_CELLS` cells each, one row at the least."""
    step = max(1, PIECE_CELLS // max(1, width))
    return [(i * step, min((i + 1) * step, n_rows)) for i in range(ceil_div(n_rows, step))]


def shuffled(key: int, values: Integers) -> Bytes:
    """Return numbers below 256, one a row, in random order: uint8 (n_rows,)."""
    order = np.argsort(derive_array(key, np.arange(len(values), dtype=np.uint64)), kind="stable")
    out = np.empty(len(values), dtype=np.uint8)
    out[order] = values
    return out


def signs(key: int, n: int) -> Ints:
    """Return n random signs: int64 (n,) of -1 and 1."""
    bits = derive_array(key, np.arange(n, dtype=np.uint64)) >> np.uint64(63)
    return 2 * bits.astype(np.int64) - 1


def additive_classes(causes: Cells, directions: Ints, noise: Cells) -> Bytes:
    """Return whether a signed sum of causes plus noise is above 0: uint8 (n,).

    Parameters
    ----------
    causes : int32 (n, r)
        Cells of the causes. Sums are integers, so no class hangs on the order of adding.
    directions : int64 (r,)
        Sign of each cause.
    noise : int32 (n, 1)
        Added with half the weight of all causes together, max(1, round(sqrt(r) / 2)).
    """
    weight = max(1, round(math.sqrt(len(directions)) / 2))
    score = causes @ directions + weight * noise[:, 0].astype(np.int64)
    return (score > 0).astype(np.uint8)


MAX_RELEVANT = 1000
_PLACES = 1


@dataclass(frozen=True)
class Planted(Problem):
    """A table of which some features, at random positions, are relevant.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted.
    n_relevant : int
        Relevant features, 1 to :attr:`most_relevant`.
    seed : int
        Seed of the table.

    Raises
    ------
    UsageError
        If a parameter is outside its range.
    """

    most_relevant: ClassVar[int] = MAX_RELEVANT

    n_rows: int
    n_features: int
    n_relevant: int
    seed: int

    def __post_init__(self) -> None:
        super().__post_init__()
        most = min(self.n_features, self.most_relevant)
        if not 1 <= self.n_relevant <= most:
            raise UsageError(
                f"--relevant: expected 1 to {most} (at most --features and at most "
                f"{self.most_relevant}), found {self.n_relevant}."
            )

    @cached_property
    def positions(self) -> Uints32:
        """Source positions of the relevant features, first to last: uint32 (n_relevant,)."""
        return distinct_places(self._key(_PLACES), self.n_relevant, self.n_features)

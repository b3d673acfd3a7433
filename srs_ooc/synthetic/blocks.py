"""Features in autoregressive blocks: one cause in each of some blocks, or none at all."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from srs_ooc.base.arrays import Bytes, Uints32
from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import below
from srs_ooc.base.text import ceil_div
from srs_ooc.synthetic import problems
from srs_ooc.synthetic.cells import Cells, hash_grid, noise_cells, normals, to_cells

MAX_BLOCK_SIZE = 1000
_BLOCKS, _MEMBERS, _CELLS, _SIGNS, _CORRELATED_NOISE = 1, 2, 3, 4, 5
_NOISE_COLUMN = np.zeros(1, dtype=np.uint32)


def block_cells(
    key: int, start: int, stop: int, columns: Uints32, block_size: int, correlation: float
) -> Cells:
    """Return cells of blocks of neighbours, each an AR(1) series: int32 (stop - start, n columns).

    Feature j of a block is ``correlation`` times the one before it plus independent normal noise,
    with mean 0 and variance 1. Only blocks with a column asked for are computed, so the work for
    scattered columns is up to ``block_size`` times that of noise.
    """
    blocks, place = np.unique(columns // np.uint32(block_size), return_inverse=True)
    member = columns % np.uint32(block_size)
    rows = np.arange(start, stop, dtype=np.uint64)
    out = np.empty((stop - start, len(columns)), dtype=np.int32)
    scale = np.sqrt(1.0 - correlation * correlation)
    state = np.empty((stop - start, len(blocks)))
    for j in range(int(member.max()) + 1 if len(columns) else 0):
        fresh = normals(hash_grid(key, rows, blocks.astype(np.uint64) * np.uint64(block_size) + j))
        state = correlation * state + scale * fresh if j else fresh
        at = np.flatnonzero(member == j)
        out[:, at] = to_cells(state[:, place[at]])
    return out


@dataclass(frozen=True)
class Blocks(problems.Planted):
    """A table of correlated blocks with one cause in each of some blocks.

    Neighbours in the source form blocks of ``block_size`` (the last may be shorter), autoregressive
    inside and independent of one another. The class is the sign of a sum of the causes with random
    signs and equal weights, and normal noise of half their weight together. The other members of
    a block with a cause stand in for it: they are relevant by Definition 1 of the paper.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted.
    n_relevant : int
        Blocks with a cause, 1 to all blocks; blocks and places of causes are random.
    seed : int
        Seed of the table.
    block_size : int
        Features of a block, 1 to 1000.
    correlation : float
        Of neighbours in a block, between -1 and 1.

    Raises
    ------
    UsageError
        If a parameter is outside its range.
    """

    name = "blocks"
    word = (103,)

    block_size: int = 20
    correlation: float = 0.9

    def __post_init__(self) -> None:
        problems.Problem.__post_init__(self)
        size, correlation = self.block_size, self.correlation
        if not 1 <= size <= MAX_BLOCK_SIZE:
            raise UsageError(f"--block-size: expected 1 to {MAX_BLOCK_SIZE}, found {size}.")
        if not -1 < correlation < 1:
            raise UsageError(
                f"--correlation: expected a number inside -1..1, found {correlation:g}."
            )
        n_blocks = ceil_div(self.n_features, self.block_size)
        if not 1 <= self.n_relevant <= n_blocks:
            raise UsageError(
                f"--relevant: expected 1 to {n_blocks}, the number of blocks, "
                f"found {self.n_relevant}."
            )

    def cells(self, start: int, stop: int, columns: Uints32) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        key = self._key(_CELLS)
        return block_cells(key, start, stop, columns, self.block_size, self.correlation)

    def target(self, start: int, stop: int) -> Bytes:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        return problems.additive_classes(
            self.cells(start, stop, self.positions),
            problems.signs(self._key(_SIGNS), self.n_relevant),
            noise_cells(self._key(_CORRELATED_NOISE), start, stop, _NOISE_COLUMN),
        )

    def roles(self) -> dict[str, tuple[int, ...]]:
        """Return each cause, and the features that stand in for it."""
        causes = set(self.positions.tolist())
        proxies = {member for block in self.blocks_with_cause for member in block} - causes
        return {"cause": tuple(sorted(causes)), "proxy": tuple(sorted(proxies))}

    @property
    def blocks_with_cause(self) -> tuple[tuple[int, ...], ...]:
        """The blocks with a cause, ascending."""
        blocks = (self._members(place // self.block_size) for place in self.positions.tolist())
        return tuple(sorted(blocks))

    @cached_property
    def positions(self) -> Uints32:
        """Source positions of the causes: uint32 (n_relevant,)."""
        n_blocks = ceil_div(self.n_features, self.block_size)
        blocks = problems.distinct_places(self._key(_BLOCKS), self.n_relevant, n_blocks).tolist()
        key = self._key(_MEMBERS)
        members = (self._members(block) for block in blocks)
        return np.array([m[below(key, i, len(m))] for i, m in enumerate(members)], dtype=np.uint32)

    def _members(self, block: int) -> tuple[int, ...]:
        first = block * self.block_size
        return tuple(range(first, min(first + self.block_size, self.n_features)))


BLOCK_SIZE = 20
CORRELATION = 0.9
_NULL_CELLS, _NULL_CLASSES = 1, 2


@dataclass(frozen=True)
class Noise(problems.Problem):
    """A table of standard normal features, independent of the target.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the table, the target not counted.
    seed : int
        Seed of the table.
    blocks : bool
        Features in correlated blocks of 20, as in :class:`Blocks`;
        otherwise independent of one another too.

    Raises
    ------
    UsageError
        If a parameter is outside its range.
    """

    name = "noise"
    word = (104,)

    n_rows: int
    n_features: int
    seed: int
    blocks: bool = False

    def cells(self, start: int, stop: int, columns: Uints32) -> Cells:
        """Return the cells of rows ``start .. stop - 1``: int32 (stop - start, len(columns))."""
        key = self._key(_NULL_CELLS)
        if self.blocks:
            return block_cells(key, start, stop, columns, BLOCK_SIZE, CORRELATION)
        return noise_cells(key, start, stop, columns)

    def target(self, start: int, stop: int) -> Bytes:
        """Return the class codes, 0 or 1, of rows ``start .. stop - 1``: uint8 (stop - start,)."""
        return self._classes[start:stop]

    def roles(self) -> dict[str, tuple[int, ...]]:
        """Return that no feature is relevant."""
        return {}

    @cached_property
    def _classes(self) -> Bytes:
        is_one = np.arange(self.n_rows) < self.n_rows // 2
        return problems.shuffled(self._key(_NULL_CLASSES), is_one.astype(np.uint8))

"""Blocks that new features are drawn by, where a store is larger than the cap of its run."""

from dataclasses import replace
from typing import TypeVar

from srs_ooc.base.options import Params
from srs_ooc.runs.spec.needs import TrainingShape
from srs_ooc.samplers.srs import RandomSubspaceParams

LONG_READ_NBYTES = 1 << 16
"""Longer reads gain little, from a disk or from a server (docs/benchmarks.md, docs/remote.md)."""
MOST_BLOCK = 64
FEWEST_BLOCKS = 32
"""With fewer blocks in a subspace, features of different ones meet noticeably less often."""
_Sampler = TypeVar("_Sampler", bound=Params)


def block_for(subspace_size: int, column_nbytes: int) -> int:
    """Return the features of a block whose read is long enough, in subspaces of so many.

    The first power of two with reads long enough, or the last with blocks enough.
    """
    size, largest = 1, min(MOST_BLOCK, subspace_size // FEWEST_BLOCKS)
    while 2 * size <= largest and size * column_nbytes < LONG_READ_NBYTES:
        size *= 2
    return size


def with_draw_block(
    sampler: _Sampler, shape: TrainingShape, subspace_size: int, cap_nbytes: int
) -> _Sampler:
    """Return a sampler's options with the block for a store; 1 where the cap holds its codes.

    It depends on the sizes and the cap alone, so that a store has the same wherever it is.
    """
    column_nbytes = max(shape.n_rows, shape.n_stored_rows) * shape.code_nbytes
    if not isinstance(sampler, RandomSubspaceParams):
        return sampler
    if shape.n_features * column_nbytes <= cap_nbytes:
        return sampler
    return replace(sampler, draw_block=block_for(subspace_size, column_nbytes))

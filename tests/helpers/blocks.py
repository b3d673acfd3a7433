"""Blocks made from plain arrays, for the tests."""

import numpy as np

from srs_ooc.trees.block import Block


def block_of(codes, *, tiled, values=None):
    """A block that holds `codes` (n_columns, n_rows) of uint8 or uint16, and values of them."""
    n_columns, n_rows = codes.shape
    n_values = 0 if values is None else values.shape[1]
    block = Block(n_columns, n_rows, codes.itemsize, tiled=tiled, n_values=n_values)
    if values is not None:
        block.values[:n_columns] = values
    memory = block.codes.view(codes.dtype)
    memory[:] = np.iinfo(codes.dtype).max  # what lies beyond the columns must not matter
    if not tiled:
        memory[: codes.size] = codes.reshape(-1)
        return block
    tiles = memory.reshape(-1, n_rows, 64)
    for column in range(n_columns):
        tiles[column // 64, :, column % 64] = codes[column]
    return block

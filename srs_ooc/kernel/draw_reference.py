"""Drawing blocks of neighbours: the Python reference of the native draw (law 7)."""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.seeds import below, derive

BLOCK_SHIFT = 1 << 63
BLOCK_START = BLOCK_SHIFT | 1
"""Words that no counter of a sequence reaches."""


def draw_blocks(
    key: int, bound: int, block_size: int, excluded: NDArray[np.uint32], count: int
) -> NDArray[np.uint32]:
    """Return ``count`` distinct members of ``0 .. bound - 1``, drawn by blocks of neighbours.

    The line is cut every ``block_size`` items, at a shift that ``key`` draws; a block at an end may
    be short. The blocks lie on a circle in random order, and what is taken is the first ``count``
    members from a random one on, ``excluded`` ones passed over everywhere. So every member not
    excluded is taken with the same probability, whatever the blocks and the exclusions are.
    """
    if count == 0:
        return np.zeros(0, dtype=np.uint32)
    passed = {int(item) for item in excluded}
    shift = below(key, BLOCK_SHIFT, block_size)
    n_blocks = (bound - 1 + shift) // block_size + 1
    start_key, counter = derive(key, BLOCK_START), 0
    while (start := below(start_key, counter, bound)) in passed:
        counter += 1
    first, counter = (start + shift) // block_size, 0
    order = [first]
    while len(order) < min(n_blocks, len(passed) + count + 1):
        block = below(key, counter, n_blocks)
        counter += 1
        if block not in order:
            order.append(block)
    items = [
        item
        for block in order
        for item in range(max(0, block * block_size - shift), (block + 1) * block_size - shift)
        if item < bound
    ]
    begin = start - items[0]
    circle = [item for item in items[begin:] + items[:begin] if item not in passed]
    return np.array(circle[:count], dtype=np.uint32)

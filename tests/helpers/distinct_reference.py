"""Drawing blocks of neighbours: the Python reference of the native draw (law 7).

A line of items is cut into blocks of neighbours, the blocks are laid on a circle in random order,
and what is drawn are the first items from a random one on, excluded ones passed over everywhere.
Given any excluded items, a random place on a circle of the others is equally likely to be each of
them: so each is drawn with the same probability, whatever the blocks are.
"""

import numpy as np

from srs_ooc.base.seeds import below, derive

BLOCK_SHIFT = 1 << 63
BLOCK_START = BLOCK_SHIFT | 1
"""Words that no counter of a sequence reaches."""


def draw_blocks(key, bound, block_size, excluded, count):
    """Return ``count`` distinct members of ``0 .. bound - 1``, none excluded, in order drawn.

    ``key`` draws the shift of the cuts, then the item to start from, then the order of the blocks.
    """
    if count == 0:
        return np.zeros(0, dtype=np.uint32)
    passed = {int(item) for item in excluded}
    shift = below(key, BLOCK_SHIFT, block_size)
    start_key, counter = derive(key, BLOCK_START), 0
    while (start := below(start_key, counter, bound)) in passed:
        counter += 1
    n_blocks = (bound - 1 + shift) // block_size + 1
    order, counter = [(start + shift) // block_size], 0
    # Each block drawn gives an item that is not excluded or uses up one that is.
    while len(order) < min(n_blocks, len(passed) + count + 1):
        block = below(key, counter, n_blocks)
        counter += 1
        if block not in order:
            order.append(block)
    circle = items_from(start, order, bound, block_size, shift, passed)
    return np.array(circle[:count], dtype=np.uint32)


def items_from(start, order, bound, block_size, shift, passed):
    """Return the items of the blocks of ``order``, from ``start`` in the first one on, and around.

    Block b holds the items from ``b * block_size - shift`` on, those below ``bound`` and from 0.
    """
    items = [
        item
        for block in order
        for item in range(max(0, block * block_size - shift), (block + 1) * block_size - shift)
        if item < bound
    ]
    place = items.index(start)
    return [item for item in items[place:] + items[:place] if item not in passed]

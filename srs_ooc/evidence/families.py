"""A group of pairings under which a feature and its decoys are alike.

Elements are the numbers of r bits; exclusive or brings two of them together, and each is its own
inverse. The units of a class (rows, or groups of rows, that may trade places) are dealt into blocks
of 2**r, in which an element takes each place to that place exclusive-or the element. What is left
of a class makes smaller blocks, of 2**s, in which an element acts by its image under a random
linear map of r bits onto s. The set of a feature and its decoys is then an orbit: whichever of them
were the feature, the others would be its decoys.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.seeds import derive, derive_array

_ELEMENTS, _IMAGES, _MIRRORS = 1, 2, 3
_TINY = 4
"""Units below which the one pairing of a single family would mirror a class, so chance decides."""

_PIECE = 1 << 12
"""Blocks whose maps are made together."""

Places = NDArray[np.intp]


def n_bits_of(count: int) -> int:
    """Return r, the bits of the smallest group with ``count`` elements beside the identity."""
    return count.bit_length()


def partners(classes: Places, key: int, count: int) -> Iterator[NDArray[np.int32]]:
    """Yield the place that each takes its value from, family by family.

    Parameters
    ----------
    classes : intp (n_units,)
        Ascending; units of one class are in random order.
    key : int
        64-bit key.
    count : int
        M, at least 1. Families are distinct elements but the identity, all of them where M is
        2**r - 1, else a random choice.

    Yields
    ------
    int32 (n_units,)
        Its own inverse.
    """
    n_bits = n_bits_of(count)
    among = np.arange((1 << n_bits) - 1)
    elements = 1 + np.argsort(derive_array(derive(key, _ELEMENTS), among), kind="stable")[:count]
    starts, logs = _blocks(classes, n_bits)
    shifts = np.where(logs == n_bits, elements.astype(np.uint8)[:, None], np.uint8(0))
    for log in range(1, n_bits):
        inside = np.flatnonzero(logs == log)
        blocks, number = np.unique(starts[inside], return_inverse=True)
        for first in range(0, len(blocks), _PIECE):
            images = _images(derive(key, _IMAGES), blocks[first : first + _PIECE], n_bits, log)
            here = (number >= first) & (number < first + _PIECE)
            shifts[:, inside[here]] = images[number[here] - first][:, elements].T
    if n_bits == 1:
        sizes = np.bincount(classes)[classes] if len(classes) else classes
        stays = derive_array(derive(key, _MIRRORS), starts) & np.uint64(1) == 0
        shifts[:, (sizes < _TINY) & stays] = 0
    del logs
    for shift in shifts:
        places = np.arange(len(starts), dtype=np.int32)
        places -= starts
        places ^= shift
        places += starts
        yield places


def _blocks(classes: Places, n_bits: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return where the block of each place starts, and the logarithm of its size."""
    first = np.searchsorted(classes, classes).astype(np.int32)
    sizes = np.searchsorted(classes, classes, side="right").astype(np.int32) - first
    offset = np.arange(len(classes), dtype=np.int32) - first
    start = offset >> n_bits << n_bits
    logs = np.full(len(classes), n_bits, np.uint8)
    at = sizes >> n_bits << n_bits
    is_left = offset >= at
    for log in reversed(range(n_bits)):
        has = sizes >> log & 1 == 1
        inside = is_left & has & (offset >= at) & (offset < at + (1 << log))
        start[inside], logs[inside] = at[inside], log
        at += has.astype(np.int32) << log
    return first + start, logs


def _images(key: int, blocks: NDArray[np.int32], n_bits: int, n_onto: int) -> NDArray[np.uint8]:
    """Return the image of each element under a random map onto ``n_onto`` bits, block by block.

    uint8 (n_blocks, 2**n_bits).
    """
    size = 1 << n_bits
    elements = np.arange(size)
    parities = np.array([number.bit_count() & 1 for number in range(size)], np.uint8)
    out = np.zeros((len(blocks), size), np.uint8)
    is_spanned = np.zeros((len(blocks), size), np.bool_)
    is_spanned[:, 0] = True
    for bit in range(n_onto):
        words = blocks[:, None] * size + elements
        hashes = derive_array(derive(key, bit), words.ravel()).reshape(words.shape)
        # Bits are parities of linearly independent masks, so that every image is taken.
        mask = np.where(is_spanned, np.uint64(0), hashes | np.uint64(1)).argmax(axis=1)
        out |= parities[elements & mask[:, None]] << bit
        is_spanned |= np.take_along_axis(is_spanned, elements ^ mask[:, None], axis=1)
    return out

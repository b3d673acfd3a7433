"""What altering a feature means: its two values swapped, its codes mirrored, or its rows permuted.

A feature of two values is flipped, as in Theorem I.1 of the supplement of RFEST. Of more values the
supplement says nothing: mirrored, code c becomes ``n_codes - 1 - c``, which misses effects that are
symmetric about the middle; permuted, a row takes the code of another row. What is missing stays so
when a feature is flipped or mirrored.
"""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.base.errors import UsageError
from srs_ooc.base.seeds import Purpose, derive_array, key_of
from srs_ooc.store.manifest import CATEGORICAL
from srs_ooc.store.store import Store

AUTO, MIRROR, PERMUTE = FLIPS = ("auto", "mirror", "permute")
"""Ways to alter: of ``auto``, features of two values are flipped and all others permuted."""
FLIPPED, MIRRORED, PERMUTED = "flipped", "mirrored", "permuted"
"""What was done to a feature."""


def codes_mirrored(store: Store, features: NDArray[np.integer], flip: str) -> NDArray[np.uint16]:
    """Return of each feature the codes that are mirrored; 0 where it is permuted.

    Parameters
    ----------
    store : Store
        The run's store.
    features : int (n,)
        Stored positions.
    flip : {'auto', 'mirror', 'permute'}
        The way to alter.

    Raises
    ------
    UsageError
        If a feature of more than two categories is to be mirrored: they have no order.
    """
    n_codes: NDArray[np.uint16] = np.asarray(store.array("n_codes"), np.uint16)[features]
    if flip == PERMUTE:
        return np.zeros_like(n_codes)
    if flip == AUTO:
        return np.where(n_codes == 2, n_codes, 0).astype(np.uint16)
    if store.manifest.kind_counts.get("categorical"):
        unordered = np.flatnonzero((store.kinds()[features] == CATEGORICAL) & (n_codes > 2))
        if len(unordered):
            first = int(features[unordered[0]])
            name = store.names[int(np.asarray(store.array("positions"))[first])]
            raise UsageError(
                "--flip mirror: expected features whose values have an order, found "
                f"{len(unordered)} of categories (first: {name!r}). Take --flip auto, which "
                "permutes them."
            )
    return n_codes


def done_to(mirrored: NDArray[np.uint16]) -> list[str]:
    """Return the word for what is done to each feature."""
    words = np.where(mirrored == 0, PERMUTED, np.where(mirrored == 2, FLIPPED, MIRRORED))
    return [str(word) for word in words]


def mirror(
    codes: NDArray[np.unsignedinteger], mirrored: NDArray[np.uint16]
) -> NDArray[np.unsignedinteger]:
    """Return columns of codes (n, n_rows) mirrored; ``mirrored`` (n,) is above 0."""
    missing = np.iinfo(codes.dtype).max
    last = (mirrored - 1).astype(codes.dtype)[:, None]
    return np.where(codes == missing, codes, last - codes)


def permutation(seed: int, repeat: int, n_rows: int) -> NDArray[np.int64]:
    """Return the row whose code each row takes in a repeat: the same of all features.

    Features are altered one at a time, so one permutation does for all; that they share it makes
    their scores easier to compare, features and decoys alike.
    """
    hashes = derive_array(key_of(seed, Purpose.ALTERED, repeat), np.arange(n_rows, dtype=np.uint64))
    return np.argsort(hashes, kind="stable")

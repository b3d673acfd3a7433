"""Saved trees: from bytes to arrays, and rows walked down them, natively.

:mod:`srs_ooc.kernel.forest_reference` is the twin of this module and states the format.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.kernel import _native

LEAF, PROBE_SPLIT = -1, -2


@dataclass(frozen=True)
class Trees:
    """Some trees, their nodes in preorder, one tree after another.

    Attributes
    ----------
    root : int32 (n_trees,)
        Each tree's first node.
    feature : int64 (n_nodes,)
        Stored position of a split's feature, :data:`LEAF`, or :data:`PROBE_SPLIT` for a split on an
        added column.
    code : int32 (n_nodes,)
        Codes up to it go left, to the next node; of a leaf, its number of pairs.
    right : int32 (n_nodes,)
        A split's right child; of a leaf, its first pair.
    n_rows : int64 (n_nodes,)
        Training rows at the node.
    pair_class, pair_count : int32 (n_pairs,)
        Classes with training rows in a leaf, ascending, and how many.
    """

    root: NDArray[np.int32]
    feature: NDArray[np.int64]
    code: NDArray[np.int32]
    right: NDArray[np.int32]
    n_rows: NDArray[np.int64]
    pair_class: NDArray[np.int32]
    pair_count: NDArray[np.int32]


_DTYPES = (np.int32, np.int64, np.int32, np.int32, np.int64, np.int32, np.int32)


def decode_trees(data: bytes, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Trees:
    """Return the trees that lie in ``data`` at ``starts[i]:stops[i]``, without the GIL.

    Raises
    ------
    ValueError
        If bytes are not those of a tree.
    """
    arrays = _native.decode_trees(np.frombuffer(data, np.uint8), starts, stops)
    return Trees(*(np.frombuffer(a, d) for a, d in zip(arrays, _DTYPES, strict=True)))


def add_shares(
    trees: Trees,
    slot: NDArray[np.int64],
    threshold: NDArray[np.float64],
    panel: NDArray[np.float64],
    shares: NDArray[np.float64],
) -> None:
    """Add each tree's class shares of each row to ``shares``, in the order of trees, GIL released.

    Parameters
    ----------
    trees : Trees
        The trees.
    slot : int64 (n_nodes,)
        Row of ``panel`` a split looks at; negative values as in ``Trees.feature``.
    threshold : float64 (n_nodes,)
        Values up to it go left.
    panel : float64 (n_slots, m)
        Values, at least as many columns as ``shares`` has rows.
    shares : float64 (n_rows, n_classes)
        Added to. A split on an added column sends a row both ways, weighted by training rows.

    Raises
    ------
    ValueError
        If a tree needs a slot or class that is not there.
    """
    _native.add_shares(
        trees.root,
        slot,
        threshold,
        trees.code,
        trees.right,
        trees.n_rows,
        trees.pair_class,
        trees.pair_count,
        panel,
        shares,
    )

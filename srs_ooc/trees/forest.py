"""Saved trees: from bytes to arrays, and rows walked down them, natively.

:mod:`srs_ooc.trees.forest_reference` is the twin of this module and states the format.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from srs_ooc.native import _native
from srs_ooc.trees.block import Block

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
        Codes up to it go left, to the next node (-1: none, 65534: all that are not missing); of
        categories their places; of a leaf, its number of pairs.
    right : int32 (n_nodes,)
        A split's right child; of a leaf, its first pair.
    n_rows : int64 (n_nodes,)
        Training weight at the node: rows, unless they are weighted.
    how : int32 (n_nodes,)
        How a split sends rows (:class:`srs_ooc.trees.forest_reference.How`).
    hash : uint32 (n_nodes,)
        Of a bijection of categories.
    pair_class : int32 (n_pairs,)
        Classes with training rows in a leaf, ascending; 0 for targets.
    pair_count : int64 (n_pairs,)
        Their weight; of targets the sum, each times its weight.
    """

    root: NDArray[np.int32]
    feature: NDArray[np.int64]
    code: NDArray[np.int32]
    right: NDArray[np.int32]
    n_rows: NDArray[np.int64]
    how: NDArray[np.int32]
    hash: NDArray[np.uint32]
    pair_class: NDArray[np.int32]
    pair_count: NDArray[np.int64]


_INT = (np.int32, np.int64, np.int32, np.int32, np.int64)
_DTYPES = (*_INT, np.int32, np.uint32, np.int32, np.int64)


def decode_trees(
    data: bytes,
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    *,
    regression: bool = False,
) -> Trees:
    """Return the trees that lie in ``data`` at ``starts[i]:stops[i]``, without the GIL.

    ``regression``: their leaves hold targets.

    Raises
    ------
    ValueError
        If bytes are not those of a tree.
    """
    arrays = _native.decode_trees(np.frombuffer(data, np.uint8), starts, stops, regression)
    return Trees(*(np.frombuffer(a, d) for a, d in zip(arrays, _DTYPES, strict=True)))


def add_shares(
    trees: Trees,
    slot: NDArray[np.int64],
    threshold: NDArray[np.float64],
    panel: NDArray[np.float64],
    shares: NDArray[np.float64],
    code_nbytes: int = 1,
) -> None:
    """Add each tree's class shares of each row to ``shares``, in the order of trees, GIL released.

    Of regression trees the mean whole-number target, as the only class.

    Parameters
    ----------
    trees : Trees
        The trees.
    slot : int64 (n_nodes,)
        Row of ``panel`` a split looks at; negative values as in ``Trees.feature``.
    threshold : float64 (n_nodes,)
        Values up to it go left.
    panel : float64 (n_slots, m)
        Values, at least as many columns as ``shares`` has rows; NaN for missing ones. Of
        categories their codes in the training store, -1 for one that is not there.
    shares : float64 (n_rows, n_classes)
        Added to. A split on an added column sends a row both ways, weighted by training weight.
        What is missing and was not in training, or an unknown category, goes the heavier way.
    code_nbytes : int
        Of the training store's codes.

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
        trees.how,
        trees.hash,
        trees.pair_class,
        trees.pair_count,
        code_nbytes,
        panel,
        shares,
    )


def predict_block(
    record: bytes,
    block: Block,
    features: NDArray[np.uint32],
    rows: NDArray[np.int32],
    n_classes: int,
    *,
    regression: bool = False,
) -> NDArray[np.float64]:
    """Return what a tree says of rows of the block that it was grown on, without the GIL.

    Parameters
    ----------
    record : bytes
        The tree.
    block : Block
        Its codes.
    features : uint32 (n_columns,)
        The feature of each column, ascending.
    rows : int32 (n,)
        Rows of the block.
    n_classes : int
        1 where leaves hold targets.
    regression : bool
        Whether they do.

    Returns
    -------
    float64 (n, n_classes)
        Class shares, or the mean whole-number target.

    Raises
    ------
    ValueError
        If the tree names a column, or ``rows`` a row, that is not there.
    """
    shares = np.zeros((len(rows), n_classes))
    data = np.frombuffer(record, np.uint8)
    shape = block.code_nbytes, block.tiled, block.n_rows
    _native.predict_block(data, regression, block.codes, *shape, features, rows, shares)
    return shares

"""The ensemble of a run (the paper's second result) applied to rows: the mean of its trees.

Algorithm 1 returns T trees besides F. A tree's say of a row is the class shares of the training
rows in the leaf it falls in; the ensemble's is their mean over all trees, and its prediction the
class with the largest mean, the first of equal ones.
"""

import numpy as np
from numpy.typing import NDArray

from srs_ooc.kernel.forest import add_shares
from srs_ooc.ledger.splits import CODE_BITS, SplitTable
from srs_ooc.ledger.trees import TreeReader

NODE_NBYTES = 160
"""Allowance for a decoded node, its copies and what is looked up for it."""


def ensemble_nbytes(splits: SplitTable) -> int:
    """Return the bytes that trees and thresholds need in memory, however many trees there are."""
    table = 24 * len(splits.keys) + 8 * len(splits.features)
    return NODE_NBYTES * int(splits.facts["largest"]) + table


def probabilities(
    trees: TreeReader,
    splits: SplitTable,
    values: NDArray[np.float64],
    n_rows: int,
    *,
    as_codes: bool,
) -> NDArray[np.float64]:
    """Return the mean class shares of the first ``n_rows`` rows of a panel.

    Trees are read from disk a part at a time. Sums are taken in the order of trees, row by row, so
    the result does not depend on how rows or trees are parted.

    Parameters
    ----------
    trees : TreeReader
        The run's trees.
    splits : SplitTable
        For these trees.
    values : float64 (n_used, at least n_rows)
        The features of ``splits``.
    n_rows : int
        Rows wanted.
    as_codes : bool
        The values are codes of the training store.

    Returns
    -------
    float64 (n_rows, n_classes)
    """
    shares = np.zeros((n_rows, len(splits.facts["classes"])))
    n_trees = 0
    for batch in trees.batches():
        n_trees += len(batch.root)
        slot = batch.feature.copy()
        at_split = np.flatnonzero(slot >= 0)
        features, codes = slot[at_split], batch.code[at_split]
        slot[at_split] = np.searchsorted(splits.features, features)
        threshold = np.zeros(len(slot))
        if as_codes:
            threshold[at_split] = codes
        else:
            place = np.searchsorted(splits.keys, features << CODE_BITS | codes)
            threshold[at_split] = splits.thresholds[place]
        add_shares(batch, slot, threshold, values, shares)
    return shares / n_trees

"""The ensemble of a run (the paper's second result) applied to rows: the mean of its trees.

Algorithm 1 returns T trees besides F. A tree's say of a row is the class shares of the training
rows in the leaf it falls in; the ensemble's is their mean over all trees, and its prediction the
class with the largest mean, the first of equal ones. Of a regression its say is the mean target of
those rows. The trees of a method that holds rows out vote instead (Huynh-Thu and Geurts 2023).
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from srs_ooc.runs.run_trees import BATCH_NBYTES, TreeReader
from srs_ooc.runs.tree_splits import CODE_BITS, SPLIT_NBYTES, SplitTable, has_threshold
from srs_ooc.trees.saved import PROBE_SPLIT, Trees, add_shares

NODE_NBYTES = 160
"""Allowance for a decoded node, its copies and what is looked up for it."""


RECORD_NBYTES_PER_ROW = 18
"""Bytes that the record of one tree takes at most for each row it was grown on."""


def ensemble_nbytes(splits: SplitTable) -> int:
    """Return the bytes that trees and thresholds need in memory, however many trees there are."""
    table = 24 * len(splits.keys) + 8 * len(splits.features)
    return NODE_NBYTES * int(splits.facts["largest"]) + table


def most_ensemble_nbytes(trees: TreeReader, n_keys: int, n_used: int, n_training_rows: int) -> int:
    """Return a bound on :func:`ensemble_nbytes` before it is known how many nodes trees have."""
    record = RECORD_NBYTES_PER_ROW * n_training_rows
    n_nodes = 2 * min(trees.nbytes, BATCH_NBYTES + record) // SPLIT_NBYTES
    return NODE_NBYTES * n_nodes + 24 * n_keys + 8 * n_used


def probabilities(
    trees: TreeReader,
    splits: SplitTable,
    values: NDArray[np.float64],
    n_rows: int,
    *,
    as_codes: bool,
) -> NDArray[np.float64]:
    """Return the mean class shares, or mean votes, of the first ``n_rows`` rows of a panel.

    NaN is a missing value; a category not known is -1. Trees are read from disk a part at a time.
    Sums are taken in the order of trees, row by row, so the result does not depend on how rows or
    trees are parted.

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
        Of a regression the mean targets, as the only column.
    """
    facts = splits.facts
    shares = np.zeros((n_rows, max(1, len(facts["classes"]))))
    n_trees = 0
    for batch in trees.batches():
        n_trees += len(batch.root)
        slot = _without_decoys(batch.feature, facts.get("first_decoy"))
        at_split = np.flatnonzero(slot >= 0)
        slot[at_split] = np.searchsorted(splits.features, slot[at_split])
        threshold = _thresholds(batch, slot, splits, as_codes=as_codes)
        add = _add_votes if trees.ensemble.votes and facts["classes"] else add_shares
        add(batch, slot, threshold, values, shares, facts["code_nbytes"])
    shares /= n_trees
    return shares if facts["scale"] is None else facts["center"] + shares / facts["scale"]


def _add_votes(
    trees: Trees,
    slot: NDArray[np.int64],
    threshold: NDArray[np.float64],
    values: NDArray[np.float64],
    votes: NDArray[np.float64],
    code_nbytes: int,
) -> None:
    """Count each tree's vote on each row: the likeliest class, the first of equal ones.

    Parameters are those of :func:`srs_ooc.trees.saved.add_shares`.
    """
    rows = np.arange(len(votes))
    for root in trees.root:
        shares = np.zeros_like(votes)
        one = replace(trees, root=np.array([root], np.int32))
        add_shares(one, slot, threshold, values, shares, code_nbytes)
        votes[rows, shares.argmax(axis=1)] += 1.0


def _without_decoys(feature: NDArray[np.int64], first_decoy: int | None) -> NDArray[np.int64]:
    """Return the features of splits; those on decoys, which other rows lack, are as on a probe."""
    out = feature.copy()
    if first_decoy is not None:
        out[feature >= first_decoy] = PROBE_SPLIT
    return out


def _thresholds(
    trees: Trees, slot: NDArray[np.int64], splits: SplitTable, *, as_codes: bool
) -> NDArray[np.float64]:
    """Return the threshold of each node; infinite where all values that are there go one way."""
    threshold = trees.code.astype(np.float64)
    if as_codes:
        return threshold
    threshold = np.where(trees.code < 0, -np.inf, np.inf)
    looked_up = has_threshold(trees) & (slot >= 0)
    keys = trees.feature[looked_up] << CODE_BITS | trees.code[looked_up]
    threshold[looked_up] = splits.thresholds[np.searchsorted(splits.keys, keys)]
    return threshold

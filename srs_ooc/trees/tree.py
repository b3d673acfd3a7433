"""How a tree is grown, and what it says."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

IMPORTANCE_BITS = 36
"""Importances are counted in units of ``2**-36``, so that their sums are exact in any order."""
IMPURITIES = ("gini", "entropy", "variance")
"""What splits decrease; the last one of targets, the others of classes."""
SPLITTERS = ("random", "best")
THRESHOLDS = ("rank", "value")
"""Whether random thresholds are uniform between ranks (codes) or between values."""


@dataclass(frozen=True)
class TreeLimits:
    """How a tree is randomized and where it stops.

    Attributes
    ----------
    max_features : int
        K: candidate columns drawn at each node among those not constant there; all of them where
        it is at least the number of columns.
    max_depth : int or None
        Depth at which nodes are leaves; None for no limit.
    min_samples_leaf : int
        Fewest rows a split may leave on a side.
    impurity : {'gini', 'entropy', 'variance'}
        What splits decrease.
    min_decrease : int
        Least importance of a split, in units of ``2**-36``.
    splitter : {'random', 'best'}
        One random split a candidate (extra-trees), or the best one over its codes (CART).
    """

    max_features: int
    max_depth: int | None = None
    min_samples_leaf: int = 1
    impurity: str = "gini"
    min_decrease: int = 0
    splitter: str = "random"

    def most_leaves(self, n_rows: int) -> int:
        """Return the most leaves a tree on ``n_rows`` rows can have."""
        leaves = max(1, n_rows // self.min_samples_leaf)
        if self.max_depth is not None and self.max_depth < leaves.bit_length():
            return min(leaves, 1 << self.max_depth)
        return leaves


@dataclass(frozen=True)
class GrownTree:
    """What one tree says.

    Attributes
    ----------
    importance : int64 (n_columns,)
        MDI importances (Eq. 1 of the paper, unnormalised) in units of ``2**-36``; of targets, the
        share of their variance in the training rows.
    n_nodes, n_leaves, depth : int
        Its size; a lone root has depth 0.
    record : bytes or None
        The tree itself, as :mod:`srs_ooc.trees.forest_reference` tells; None unless asked for.
    """

    importance: NDArray[np.int64]
    n_nodes: int
    n_leaves: int
    depth: int
    record: bytes | None = None
